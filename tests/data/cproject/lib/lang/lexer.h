/* Source text to tokens, one at a time. The text must outlive the tokens. */
#ifndef QUILL_LEXER_H
#define QUILL_LEXER_H

#include "lang/token.h"

struct lexer {
  const char *at, *end;
  int line;
};

void lexer_start(struct lexer *lexer, const char *text, size_t length);
struct token lexer_next(struct lexer *lexer);

#endif
