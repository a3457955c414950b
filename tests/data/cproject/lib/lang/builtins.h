/* The functions that every program has. Each table ends with an entry without a name. */
#ifndef QUILL_BUILTINS_H
#define QUILL_BUILTINS_H

#include "lang/eval.h"

extern const struct builtin builtins_math[];
extern const struct builtin builtins_text[];

static inline void builtins_define(struct run *run, const struct builtin *table) {
  for (; table->name; table++)
    env_define(&run->arena, run->globals, table->name, (struct value){.kind = V_BUILTIN, .builtin = table});
}

#endif
