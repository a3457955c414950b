/* Operator precedence climbing; what an expression starts with decides the rest. */
#include "lang/parser.h"

#include <string.h>

#include "lang/lexer.h"

enum { MAX_DEPTH = 200 };

struct parser {
  struct lexer lexer;
  struct token now;
  struct arena *arena;
  struct buf *error;
  int depth;
};

static struct node *expression(struct parser *p, int least);
static struct node *block(struct parser *p, enum token_kind end);

static void advance(struct parser *p) { p->now = lexer_next(&p->lexer); }

static struct node *failed(struct parser *p, const char *what) {
  if (p->error->length) return NULL; /* the first one says it */
  if (p->now.kind == T_ERROR) buf_printf(p->error, "line %d: %s", p->now.line, p->now.text);
  else if (p->now.kind == T_END) buf_printf(p->error, "line %d: expected %s, but the text ends", p->now.line, what);
  else buf_printf(p->error, "line %d: expected %s before '%.*s'", p->now.line, what, (int)p->now.length, p->now.text);
  return NULL;
}

static int take(struct parser *p, enum token_kind kind, const char *what) {
  if (p->now.kind != kind) return failed(p, what), 0;
  advance(p);
  return 1;
}

static struct node *text_node(struct parser *p, enum node_kind kind) {
  struct node *node = ast_new(p->arena, kind, p->now.line);
  node->text = arena_copy(p->arena, p->now.text, p->now.length);
  node->length = p->now.length;
  return node;
}

static struct node *string(struct parser *p) {
  struct node *node = text_node(p, N_STRING);
  char *out = (char *)node->text;
  for (const char *in = node->text, *end = in + node->length; in < end; in++) {
    if (*in == '\\' && in + 1 < end) {
      in++;
      *out++ = *in == 'n' ? '\n' : *in == 't' ? '\t' : *in;
    } else {
      *out++ = *in;
    }
  }
  *out = '\0';
  node->length = (size_t)(out - node->text);
  return node;
}

/* Expressions between commas up to the closing bracket, which is taken. */
static int list(struct parser *p, struct node **items) {
  while (p->now.kind != T_RPAREN) {
    if (!(*items = expression(p, 0))) return 0;
    items = &(*items)->next;
    if (p->now.kind != T_COMMA) break;
    advance(p);
  }
  return take(p, T_RPAREN, "')'");
}

static struct node *function(struct parser *p) {
  struct node *node = ast_new(p->arena, N_FN, p->now.line);
  advance(p);
  if (!take(p, T_LPAREN, "'('") || !list(p, &node->items)) return NULL;
  for (struct node *item = node->items; item; item = item->next)
    if (item->kind != N_NAME) return failed(p, "names as parameters");
  if (!take(p, T_ARROW, "'=>'")) return NULL;
  return (node->a = expression(p, 0)) ? node : NULL;
}

static struct node *condition(struct parser *p) {
  struct node *node = ast_new(p->arena, N_IF, p->now.line);
  advance(p);
  if (!(node->a = expression(p, 0)) || !take(p, T_THEN, "'then'") || !(node->b = expression(p, 0))) return NULL;
  if (p->now.kind != T_ELSE) return node;
  advance(p);
  return (node->c = expression(p, 0)) ? node : NULL;
}

static struct node *let(struct parser *p) {
  advance(p);
  if (p->now.kind != T_NAME) return failed(p, "a name");
  struct node *node = text_node(p, N_LET);
  advance(p);
  if (!take(p, T_ASSIGN, "'='")) return NULL;
  return (node->a = expression(p, 0)) ? node : NULL;
}

static struct node *unary(struct parser *p, int least) {
  struct node *node = ast_new(p->arena, N_UNARY, p->now.line);
  node->op = p->now.kind;
  advance(p);
  return (node->a = expression(p, least)) ? node : NULL;
}

static struct node *primary(struct parser *p) {
  struct node *node = NULL;
  switch (p->now.kind) {
    case T_NUMBER: node = ast_new(p->arena, N_NUMBER, p->now.line), node->number = p->now.number; break;
    case T_TRUE: case T_FALSE: node = ast_new(p->arena, N_BOOL, p->now.line), node->number = p->now.kind == T_TRUE; break;
    case T_NIL: node = ast_new(p->arena, N_NIL, p->now.line); break;
    case T_STRING: node = string(p); break;
    case T_NAME: node = text_node(p, N_NAME); break;
    case T_LET: return let(p);
    case T_FN: return function(p);
    case T_IF: return condition(p);
    case T_MINUS: return unary(p, 7);
    case T_NOT: return unary(p, 3);
    case T_LBRACE:
      advance(p);
      node = block(p, T_RBRACE);
      return node && take(p, T_RBRACE, "'}'") ? node : NULL;
    case T_LPAREN:
      advance(p);
      node = expression(p, 0);
      return node && take(p, T_RPAREN, "')'") ? node : NULL;
    default: return failed(p, "an expression");
  }
  advance(p);
  return node;
}

static struct node *postfix(struct parser *p) {
  struct node *node = primary(p);
  while (node && p->now.kind == T_LPAREN) {
    struct node *call = ast_new(p->arena, N_CALL, p->now.line);
    call->a = node;
    advance(p);
    node = list(p, &call->items) ? call : NULL;
  }
  return node;
}

static int precedence(enum token_kind op) {
  switch (op) {
    case T_OR: return 1;
    case T_AND: return 2;
    case T_EQ: case T_NE: case T_LT: case T_LE: case T_GT: case T_GE: return 4;
    case T_PLUS: case T_MINUS: return 5;
    case T_STAR: case T_SLASH: case T_PERCENT: return 6;
    case T_CARET: return 8;
    default: return 0;
  }
}

static struct node *expression(struct parser *p, int least) {
  if (++p->depth > MAX_DEPTH) return failed(p, "less nesting");
  struct node *left = postfix(p);
  int level;
  while (left && (level = precedence(p->now.kind)) > least) {
    struct node *node = ast_new(p->arena, N_BINARY, p->now.line);
    node->op = p->now.kind;
    node->a = left;
    advance(p);
    node->b = expression(p, node->op == T_CARET ? level - 1 : level);
    left = node->b ? node : NULL;
  }
  p->depth--;
  return left;
}

static struct node *block(struct parser *p, enum token_kind end) {
  struct node *node = ast_new(p->arena, N_BLOCK, p->now.line), **items = &node->items;
  while (p->now.kind != end) {
    if (p->now.kind == T_SEMICOLON) {
      advance(p);
      continue;
    }
    if (!(*items = expression(p, 0))) return NULL;
    items = &(*items)->next;
    if (p->now.kind != end && p->now.kind != T_SEMICOLON) return failed(p, "';'");
  }
  return node;
}

struct node *parse(struct arena *arena, const char *text, size_t length, struct buf *error) {
  struct parser p = {.arena = arena, .error = error};
  lexer_start(&p.lexer, text, length);
  advance(&p);
  return block(&p, T_END);
}
