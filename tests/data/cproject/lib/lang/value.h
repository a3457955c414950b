/* What expressions come to. Values are small and copied; what they point to lives in the arena of the run. */
#ifndef QUILL_VALUE_H
#define QUILL_VALUE_H

#include "lang/ast.h"

enum value_kind { V_NIL, V_BOOL, V_NUMBER, V_TEXT, V_FN, V_BUILTIN, V_ERROR };

struct run;
struct value;
typedef struct value builtin_fn(struct run *run, const struct value *arguments, int count);

struct builtin {
  const char *name;
  int arity; /* -1: any number */
  builtin_fn *call;
};

struct value {
  enum value_kind kind;
  union {
    double number; /* V_NUMBER; V_BOOL: 0 or 1 */
    struct { const char *text; size_t length; }; /* V_TEXT, V_ERROR */
    struct { const struct node *fn; struct env *env; };
    const struct builtin *builtin;
  };
};

struct value value_number(double number);
struct value value_bool(int truth);
struct value value_text(const char *text, size_t length);
int value_truth(struct value value);
int value_equal(struct value a, struct value b);
const char *value_kind_name(struct value value);
void value_print(struct buf *out, struct value value);

#endif
