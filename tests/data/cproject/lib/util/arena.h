/* Memory that is given back all at once. */
#ifndef QUILL_ARENA_H
#define QUILL_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
  struct arena_block *blocks;
  size_t used; /* of the newest block */
};

/* Zeroed memory, aligned for any type; never NULL. */
void *arena_alloc(struct arena *arena, size_t size);
/* A copy of text[0..length) with a NUL behind it. */
char *arena_copy(struct arena *arena, const char *text, size_t length);
void arena_free(struct arena *arena);

#endif
