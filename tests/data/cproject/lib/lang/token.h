#ifndef QUILL_TOKEN_H
#define QUILL_TOKEN_H

#include <stddef.h>

enum token_kind {
  T_END, T_ERROR, T_NUMBER, T_STRING, T_NAME,
  T_LET, T_FN, T_IF, T_THEN, T_ELSE, T_TRUE, T_FALSE, T_NIL, T_AND, T_OR, T_NOT,
  T_PLUS, T_MINUS, T_STAR, T_SLASH, T_PERCENT, T_CARET,
  T_ASSIGN, T_EQ, T_NE, T_LT, T_LE, T_GT, T_GE,
  T_LPAREN, T_RPAREN, T_LBRACE, T_RBRACE, T_COMMA, T_SEMICOLON, T_ARROW
};

struct token {
  enum token_kind kind;
  const char *text; /* in the source; for T_ERROR what is wrong */
  size_t length;
  int line;
  double number;
};

#endif
