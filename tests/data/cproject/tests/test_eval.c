#include "check.h"
#include "lang/eval.h"

static void expect(const char *text, const char *wanted) {
  struct run run;
  struct buf out = {0};
  run_start(&run);
  value_print(&out, run_text(&run, text, strlen(text)));
  CHECK_TEXT(out.data, wanted);
  buf_free(&out);
  run_end(&run);
}

int main(void) {
  expect("1 + 2 * 3", "7");
  expect("7 % 4 - 10 / 4", "0.5");
  expect("\"a\" + \"b\" < \"b\"", "true");
  expect("let x = 2; { let x = 3; x } + x", "5");
  expect("let add = fn(a) => fn(b) => a + b; add(2)(40)", "42");
  expect("let fact = fn(n) => if n < 2 then 1 else n * fact(n - 1); fact(20)", "2.4329020081766e+18");
  expect("fold(1, 100, 0, fn(sum, i) => sum + i)", "5050");
  expect("nil or \"default\"", "default");
  expect("false and missing", "false");
  expect("upper(\"straße μ\")", "STRAẞE Μ");
  expect("slice(\"héllo\", 1, 3) + text(len(\"日本語\"))", "éll3");
  expect("slice(\"ab\", 5, 1)", "");
  expect("number(\"12.5\") + 1", "13.5");
  expect("number(\"12x\")", "nil");
  expect("max(3, 9, 4) - min(3, 9, 4)", "6");
  expect("1 / 0", "line 1: division by zero");
  expect("1 + \"a\"", "line 1: number and text do not go together");
  expect("\n\nfoo", "line 3: nothing is called foo");
  expect("len(1)", "line 1: len: wants text, not a number");
  expect("sqrt(4, 5)", "line 1: sqrt takes 1, not 2");
  expect("let f = fn() => f(); f()", "line 1: calls nested too deep");
  expect("3()", "line 1: a number cannot be called");
  expect("repeat(\"ab\", 3)", "ababab");
  expect("floor(-1.5) + round(2.5) + abs(-1)", "2");
  return DONE();
}
