/* Expressions as trees, in an arena. */
#ifndef QUILL_AST_H
#define QUILL_AST_H

#include "lang/token.h"
#include "util/arena.h"
#include "util/buf.h"

enum node_kind { N_NUMBER, N_STRING, N_BOOL, N_NIL, N_NAME, N_UNARY, N_BINARY, N_LET, N_IF, N_FN, N_CALL, N_BLOCK };

struct node {
  enum node_kind kind;
  enum token_kind op; /* N_UNARY, N_BINARY */
  int line;
  double number;     /* N_NUMBER; N_BOOL: 0 or 1 */
  const char *text;  /* N_STRING, N_NAME, N_LET */
  size_t length;
  struct node *a, *b, *c; /* operands; N_IF: condition, then, else; N_FN: body; N_CALL: what is called */
  struct node *items;     /* N_BLOCK, N_CALL: the parts; N_FN: the parameters, as names */
  struct node *next;      /* in the list that this node is in */
};

struct node *ast_new(struct arena *arena, enum node_kind kind, int line);
/* The tree with a pair of brackets around each operation, as the tests compare it. */
void ast_print(struct buf *out, const struct node *node);

#endif
