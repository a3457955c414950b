/* Names and their values, one scope inside another. */
#ifndef QUILL_ENV_H
#define QUILL_ENV_H

#include "lang/value.h"

struct binding;

struct env {
  struct env *outer;
  struct binding *first;
};

struct env *env_new(struct arena *arena, struct env *outer);
/* Sets the name in this very scope. */
void env_define(struct arena *arena, struct env *env, const char *name, struct value value);
/* Looks outwards; NULL where no scope has it. */
const struct value *env_find(const struct env *env, const char *name);

#endif
