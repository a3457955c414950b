#include "lang/env.h"

#include <string.h>

struct binding {
  const char *name;
  struct value value;
  struct binding *next;
};

struct env *env_new(struct arena *arena, struct env *outer) {
  struct env *env = arena_alloc(arena, sizeof *env);
  env->outer = outer;
  return env;
}

void env_define(struct arena *arena, struct env *env, const char *name, struct value value) {
  struct binding *binding = env->first;
  while (binding && strcmp(binding->name, name) != 0) binding = binding->next;
  if (!binding) {
    binding = arena_alloc(arena, sizeof *binding);
    binding->name = name;
    binding->next = env->first;
    env->first = binding;
  }
  binding->value = value;
}

const struct value *env_find(const struct env *env, const char *name) {
  for (; env; env = env->outer)
    for (const struct binding *binding = env->first; binding; binding = binding->next)
      if (!strcmp(binding->name, name)) return &binding->value;
  return NULL;
}
