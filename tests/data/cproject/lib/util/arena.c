#include "util/arena.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 * 1024 };

struct arena_block {
  struct arena_block *next;
  size_t size;
  alignas(max_align_t) unsigned char bytes[];
};

void *arena_alloc(struct arena *arena, size_t size) {
  size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
  if (!arena->blocks || arena->used + size > arena->blocks->size) {
    size_t room = size > BLOCK ? size : BLOCK;
    struct arena_block *block = calloc(1, sizeof *block + room);
    if (!block) {
      fputs("quill: out of memory\n", stderr);
      abort();
    }
    block->next = arena->blocks;
    block->size = room;
    arena->blocks = block;
    arena->used = 0;
  }
  void *result = arena->blocks->bytes + arena->used;
  arena->used += size;
  return result;
}

char *arena_copy(struct arena *arena, const char *text, size_t length) {
  char *copy = arena_alloc(arena, length + 1);
  memcpy(copy, text, length);
  return copy;
}

void arena_free(struct arena *arena) {
  while (arena->blocks) {
    struct arena_block *next = arena->blocks->next;
    free(arena->blocks);
    arena->blocks = next;
  }
  arena->used = 0;
}
