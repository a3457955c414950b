#include <math.h>

#include "lang/builtins.h"

static struct value apply(struct run *run, const struct value *argument, double (*function)(double)) {
  if (argument->kind != V_NUMBER) return run_error(run, 0, "wants a number, not a %s", value_kind_name(*argument));
  return value_number(function(argument->number));
}

static struct value do_floor(struct run *run, const struct value *a, int n) { return (void)n, apply(run, a, floor); }
static struct value do_round(struct run *run, const struct value *a, int n) { return (void)n, apply(run, a, round); }
static struct value do_abs(struct run *run, const struct value *a, int n) { return (void)n, apply(run, a, fabs); }

static struct value do_sqrt(struct run *run, const struct value *a, int n) {
  (void)n;
  if (a->kind == V_NUMBER && a->number < 0) return run_error(run, 0, "of a negative number");
  return apply(run, a, sqrt);
}

/* The greatest or the least of any number of numbers. */
static struct value extreme(struct run *run, const struct value *a, int n, int sign) {
  if (n == 0) return run_error(run, 0, "of nothing");
  double best = 0;
  for (int i = 0; i < n; i++) {
    if (a[i].kind != V_NUMBER) return run_error(run, 0, "wants numbers, not a %s", value_kind_name(a[i]));
    if (i == 0 || sign * a[i].number > sign * best) best = a[i].number;
  }
  return value_number(best);
}

static struct value do_max(struct run *run, const struct value *a, int n) { return extreme(run, a, n, 1); }
static struct value do_min(struct run *run, const struct value *a, int n) { return extreme(run, a, n, -1); }

/* fold(from, to, start, fn(sum, i)): the loop of the language. */
static struct value do_fold(struct run *run, const struct value *a, int n) {
  (void)n;
  if (a[0].kind != V_NUMBER || a[1].kind != V_NUMBER) return run_error(run, 0, "wants two numbers first");
  struct value sum = a[2];
  for (double i = a[0].number; i <= a[1].number && sum.kind != V_ERROR; i++)
    sum = run_call(run, a[3], (struct value[]){sum, value_number(i)}, 2, 0);
  return sum;
}

const struct builtin builtins_math[] = {
    {"floor", 1, do_floor}, {"round", 1, do_round}, {"abs", 1, do_abs}, {"sqrt", 1, do_sqrt},
    {"max", -1, do_max},    {"min", -1, do_min},    {"fold", 4, do_fold}, {0}};
