#include <stdlib.h>
#include <string.h>

#include "lang/builtins.h"
#include "util/fold.h"
#include "util/utf8.h"

static struct value not_text(struct run *run, struct value value) {
  return run_error(run, 0, "wants text, not a %s", value_kind_name(value));
}

static struct value from_buf(struct run *run, struct buf *buf) {
  struct value value = value_text(arena_copy(&run->arena, buf->data ? buf->data : "", buf->length), buf->length);
  buf_free(buf);
  return value;
}

static struct value do_len(struct run *run, const struct value *a, int n) {
  (void)n;
  return a->kind == V_TEXT ? value_number((double)utf8_count(a->text, a->length)) : not_text(run, *a);
}

static struct value map_characters(struct run *run, const struct value *a, uint32_t (*change)(uint32_t)) {
  if (a->kind != V_TEXT) return not_text(run, *a);
  struct buf out = {0};
  uint32_t code = 0;
  char bytes[4];
  for (size_t at = 0; at < a->length;) {
    at += utf8_decode(a->text + at, a->length - at, &code);
    buf_add(&out, bytes, utf8_encode(change(code), bytes));
  }
  return from_buf(run, &out);
}

static struct value do_upper(struct run *run, const struct value *a, int n) { return (void)n, map_characters(run, a, fold_upper); }
static struct value do_lower(struct run *run, const struct value *a, int n) { return (void)n, map_characters(run, a, fold_lower); }

/* slice(text, from, count), in characters. */
static struct value do_slice(struct run *run, const struct value *a, int n) {
  (void)n;
  if (a[0].kind != V_TEXT) return not_text(run, a[0]);
  if (a[1].kind != V_NUMBER || a[2].kind != V_NUMBER || a[1].number < 0 || a[2].number < 0)
    return run_error(run, 0, "wants where to start and how many");
  size_t at = 0, start = 0, end = 0;
  uint32_t code;
  for (double i = 0; i <= a[1].number + a[2].number; i++) {
    if (i == a[1].number) start = at;
    end = at;
    if (at == a[0].length) {
      if (i < a[1].number) start = at;
      break;
    }
    at += utf8_decode(a[0].text + at, a[0].length - at, &code);
  }
  return value_text(a[0].text + start, end - start);
}

static struct value do_text(struct run *run, const struct value *a, int n) {
  (void)n;
  struct buf out = {0};
  value_print(&out, *a);
  return from_buf(run, &out);
}

static struct value do_number(struct run *run, const struct value *a, int n) {
  (void)n;
  if (a->kind != V_TEXT) return not_text(run, *a);
  char *copy = arena_copy(&run->arena, a->text, a->length), *end;
  double number = strtod(copy, &end);
  return end == copy || *end ? (struct value){.kind = V_NIL} : value_number(number);
}

static struct value do_repeat(struct run *run, const struct value *a, int n) {
  (void)n;
  if (a[0].kind != V_TEXT || a[1].kind != V_NUMBER) return run_error(run, 0, "wants text and a number");
  if (a[1].number * (double)a[0].length > 1e6) return run_error(run, 0, "would be too long");
  struct buf out = {0};
  for (double i = 0; i < a[1].number; i++) buf_add(&out, a[0].text, a[0].length);
  return from_buf(run, &out);
}

static struct value do_print(struct run *run, const struct value *a, int n) {
  for (int i = 0; i < n; i++) {
    if (i) buf_puts(&run->printed, " ");
    value_print(&run->printed, a[i]);
  }
  buf_puts(&run->printed, "\n");
  return (struct value){.kind = V_NIL};
}

const struct builtin builtins_text[] = {
    {"len", 1, do_len},       {"upper", 1, do_upper},   {"lower", 1, do_lower}, {"slice", 3, do_slice}, {"text", 1, do_text},
    {"number", 1, do_number}, {"repeat", 2, do_repeat}, {"print", -1, do_print}, {0}};
