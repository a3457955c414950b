#include "lang/eval.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lang/builtins.h"
#include "lang/parser.h"

enum { MAX_CALLS = 1000, MAX_ARGUMENTS = 16 };

static struct value eval(struct run *run, struct env *env, const struct node *node);

struct value run_error(struct run *run, int line, const char *format, ...) {
  char message[256];
  int start = line ? snprintf(message, sizeof message, "line %d: ", line) : 0;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message + start, sizeof message - (size_t)start, format, arguments);
  va_end(arguments);
  struct value value = value_text(arena_copy(&run->arena, message, strlen(message)), strlen(message));
  value.kind = V_ERROR;
  return value;
}

struct value run_call(struct run *run, struct value function, const struct value *arguments, int count, int line) {
  if (function.kind == V_BUILTIN) {
    if (function.builtin->arity >= 0 && function.builtin->arity != count)
      return run_error(run, line, "%s takes %d, not %d", function.builtin->name, function.builtin->arity, count);
    struct value value = function.builtin->call(run, arguments, count);
    return value.kind == V_ERROR ? run_error(run, line, "%s: %s", function.builtin->name, value.text) : value;
  }
  if (function.kind != V_FN) return run_error(run, line, "a %s cannot be called", value_kind_name(function));
  if (run->depth >= MAX_CALLS) return run_error(run, line, "calls nested too deep");
  struct env *env = env_new(&run->arena, function.env);
  const struct node *parameter = function.fn->items;
  int given = 0;
  for (; parameter && given < count; parameter = parameter->next)
    env_define(&run->arena, env, parameter->text, arguments[given++]);
  if (parameter || given < count) return run_error(run, line, "called with the wrong number of arguments");
  run->depth++;
  struct value value = eval(run, env, function.fn->a);
  run->depth--;
  return value;
}

static struct value eval_call(struct run *run, struct env *env, const struct node *node) {
  struct value function = eval(run, env, node->a), arguments[MAX_ARGUMENTS];
  if (function.kind == V_ERROR) return function;
  int count = 0;
  for (const struct node *item = node->items; item; item = item->next) {
    if (count == MAX_ARGUMENTS) return run_error(run, node->line, "more than %d arguments", MAX_ARGUMENTS);
    arguments[count] = eval(run, env, item);
    if (arguments[count++].kind == V_ERROR) return arguments[count - 1];
  }
  return run_call(run, function, arguments, count, node->line);
}

static int compare(struct value a, struct value b) {
  if (a.kind == V_NUMBER) return (a.number > b.number) - (a.number < b.number);
  size_t shorter = a.length < b.length ? a.length : b.length;
  int order = memcmp(a.text, b.text, shorter);
  return order ? order : (a.length > b.length) - (a.length < b.length);
}

static struct value arithmetic(struct run *run, const struct node *node, double a, double b) {
  switch (node->op) {
    case T_PLUS: return value_number(a + b);
    case T_MINUS: return value_number(a - b);
    case T_STAR: return value_number(a * b);
    case T_CARET: return value_number(pow(a, b));
    default:
      if (b == 0) return run_error(run, node->line, "division by zero");
      return value_number(node->op == T_SLASH ? a / b : fmod(a, b));
  }
}

static struct value eval_binary(struct run *run, struct env *env, const struct node *node) {
  struct value a = eval(run, env, node->a);
  if (a.kind == V_ERROR) return a;
  if (node->op == T_AND || node->op == T_OR) return value_truth(a) == (node->op == T_OR) ? a : eval(run, env, node->b);
  struct value b = eval(run, env, node->b);
  if (b.kind == V_ERROR) return b;
  if (node->op == T_EQ || node->op == T_NE) return value_bool(value_equal(a, b) == (node->op == T_EQ));
  if (a.kind != b.kind || (a.kind != V_NUMBER && a.kind != V_TEXT))
    return run_error(run, node->line, "%s and %s do not go together", value_kind_name(a), value_kind_name(b));
  switch (node->op) {
    case T_LT: return value_bool(compare(a, b) < 0);
    case T_LE: return value_bool(compare(a, b) <= 0);
    case T_GT: return value_bool(compare(a, b) > 0);
    case T_GE: return value_bool(compare(a, b) >= 0);
    default: break;
  }
  if (a.kind == V_NUMBER) return arithmetic(run, node, a.number, b.number);
  if (node->op != T_PLUS) return run_error(run, node->line, "text can only be added");
  char *joined = arena_alloc(&run->arena, a.length + b.length + 1);
  memcpy(joined, a.text, a.length);
  memcpy(joined + a.length, b.text, b.length);
  return value_text(joined, a.length + b.length);
}

static struct value eval_unary(struct run *run, struct env *env, const struct node *node) {
  struct value a = eval(run, env, node->a);
  if (a.kind == V_ERROR) return a;
  if (node->op == T_NOT) return value_bool(!value_truth(a));
  if (a.kind != V_NUMBER) return run_error(run, node->line, "a %s has no negative", value_kind_name(a));
  return value_number(-a.number);
}

static struct value eval_block(struct run *run, struct env *env, const struct node *node) {
  struct value value = {.kind = V_NIL};
  for (const struct node *item = node->items; item && value.kind != V_ERROR; item = item->next)
    value = eval(run, env, item);
  return value;
}

static struct value eval(struct run *run, struct env *env, const struct node *node) {
  struct value value = {.kind = V_NIL};
  switch (node->kind) {
    case N_NUMBER: return value_number(node->number);
    case N_STRING: return value_text(node->text, node->length);
    case N_BOOL: return value_bool(node->number != 0);
    case N_NIL: return value;
    case N_NAME: {
      const struct value *found = env_find(env, node->text);
      return found ? *found : run_error(run, node->line, "nothing is called %s", node->text);
    }
    case N_UNARY: return eval_unary(run, env, node);
    case N_BINARY: return eval_binary(run, env, node);
    case N_LET:
      value = eval(run, env, node->a);
      if (value.kind != V_ERROR) env_define(&run->arena, env, node->text, value);
      return value;
    case N_IF:
      value = eval(run, env, node->a);
      if (value.kind == V_ERROR) return value;
      if (value_truth(value)) return eval(run, env, node->b);
      return node->c ? eval(run, env, node->c) : (struct value){.kind = V_NIL};
    case N_FN: return (struct value){.kind = V_FN, .fn = node, .env = env};
    case N_CALL: return eval_call(run, env, node);
    case N_BLOCK: return eval_block(run, env_new(&run->arena, env), node);
  }
  return value;
}

void run_start(struct run *run) {
  *run = (struct run){0};
  run->globals = env_new(&run->arena, NULL);
  builtins_define(run, builtins_math);
  builtins_define(run, builtins_text);
}

void run_end(struct run *run) {
  arena_free(&run->arena);
  buf_free(&run->printed);
}

struct value run_text(struct run *run, const char *text, size_t length) {
  struct buf error = {0};
  const char *copy = arena_copy(&run->arena, text, length);
  struct node *program = parse(&run->arena, copy, length, &error);
  struct value value = program ? eval_block(run, run->globals, program) : run_error(run, 0, "%s", error.data);
  buf_free(&error);
  return value;
}
