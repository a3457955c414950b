#include "lang/value.h"

#include <string.h>

struct value value_number(double number) { return (struct value){.kind = V_NUMBER, .number = number}; }
struct value value_bool(int truth) { return (struct value){.kind = V_BOOL, .number = truth != 0}; }
struct value value_text(const char *text, size_t length) {
  return (struct value){.kind = V_TEXT, .text = text, .length = length};
}

int value_truth(struct value value) { return !(value.kind == V_NIL || (value.kind == V_BOOL && value.number == 0)); }

int value_equal(struct value a, struct value b) {
  if (a.kind != b.kind) return 0;
  switch (a.kind) {
    case V_NIL: return 1;
    case V_BOOL: case V_NUMBER: return a.number == b.number;
    case V_TEXT: case V_ERROR: return a.length == b.length && !memcmp(a.text, b.text, a.length);
    case V_FN: return a.fn == b.fn && a.env == b.env;
    case V_BUILTIN: return a.builtin == b.builtin;
  }
  return 0;
}

const char *value_kind_name(struct value value) {
  static const char *const names[] = {"nil", "bool", "number", "text", "function", "function", "error"};
  return names[value.kind];
}

void value_print(struct buf *out, struct value value) {
  switch (value.kind) {
    case V_NIL: buf_puts(out, "nil"); break;
    case V_BOOL: buf_puts(out, value.number != 0 ? "true" : "false"); break;
    case V_NUMBER: buf_printf(out, "%.14g", value.number); break;
    case V_TEXT: case V_ERROR: buf_add(out, value.text, value.length); break;
    case V_FN: buf_puts(out, "<function>"); break;
    case V_BUILTIN: buf_printf(out, "<%s>", value.builtin->name); break;
  }
}
