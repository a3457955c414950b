#include "check.h"
#include "lang/parser.h"

static void expect(const char *text, const char *tree) {
  struct arena arena = {0};
  struct buf out = {0}, error = {0};
  struct node *node = parse(&arena, text, strlen(text), &error);
  if (node) ast_print(&out, node);
  CHECK_TEXT(node ? out.data : error.data, tree);
  buf_free(&out);
  buf_free(&error);
  arena_free(&arena);
}

int main(void) {
  expect("1 + 2 * 3 - 4", "(do (- (+ 1 (* 2 3)) 4))");
  expect("2 ^ 3 ^ 2", "(do (^ 2 (^ 3 2)))");
  expect("-2 ^ 2", "(do (- (^ 2 2)))");
  expect("not a == b and c or d", "(do (or (and (not (== a b)) c) d))");
  expect("let f = fn(x, y) => x + y; f(1, 2)(3)", "(do (let f (fn x y (+ x y))) (call (call f 1 2) 3))");
  expect("if a then { 1; 2 } else nil", "(do (if a (do 1 2) nil))");
  expect("\"tab\\tquote\\\"\"", "(do \"tab\tquote\"\")");
  expect("", "(do)");
  expect("1 +", "line 1: expected an expression, but the text ends");
  expect("\n(1", "line 2: expected ')', but the text ends");
  expect("fn(1) => 2", "line 1: expected names as parameters before '=>'");
  expect("1 2", "line 1: expected ';' before '2'");
  char deep[1001];
  memset(deep, '(', 1000);
  deep[1000] = '\0';
  expect(deep, "line 1: expected less nesting before '('");
  return DONE();
}
