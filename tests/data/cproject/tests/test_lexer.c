#include "check.h"
#include "lang/lexer.h"

static void expect(const char *text, const enum token_kind *kinds, int count) {
  struct lexer lexer;
  lexer_start(&lexer, text, strlen(text));
  for (int i = 0; i < count; i++) CHECK(lexer_next(&lexer).kind == kinds[i]);
}
#define EXPECT(text, ...) \
  expect(text, (enum token_kind[]){__VA_ARGS__, T_END}, (int)(sizeof((enum token_kind[]){__VA_ARGS__}) / sizeof(enum token_kind)) + 1)

int main(void) {
  EXPECT("let x = 1.5;", T_LET, T_NAME, T_ASSIGN, T_NUMBER, T_SEMICOLON);
  EXPECT("a<=b >= c!=d==e", T_NAME, T_LE, T_NAME, T_GE, T_NAME, T_NE, T_NAME, T_EQ, T_NAME);
  EXPECT("fn(x)=>x^2 # the rest is silence", T_FN, T_LPAREN, T_NAME, T_RPAREN, T_ARROW, T_NAME, T_CARET, T_NUMBER);
  EXPECT("größe letter iffy", T_NAME, T_NAME, T_NAME);
  EXPECT("\"a \\\" b\" \"\"", T_STRING, T_STRING);
  EXPECT("\"open", T_ERROR);
  EXPECT("1 @ 2", T_NUMBER, T_ERROR);
  EXPECT("\xff", T_ERROR);

  struct lexer lexer;
  lexer_start(&lexer, "\n\n  12.25", 9);
  struct token token = lexer_next(&lexer);
  CHECK(token.line == 3 && token.number == 12.25);
  return DONE();
}
