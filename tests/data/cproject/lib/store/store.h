/* A key-value store in one append-only file; docs/STORE.md has the format. Not for two processes at once. */
#ifndef QUILL_STORE_H
#define QUILL_STORE_H

#include <stdio.h>

#include "util/buf.h"
#include "util/map.h"

struct store {
  FILE *file;
  struct map entries; /* to struct buf */
  size_t torn;        /* bytes cut off at the end when it was opened: a write that was interrupted */
};

/* 0, or -1 with errno (EINVAL: not a store). Creates the file where there is none. */
int store_open(struct store *store, const char *path);
/* NULL where there is none. */
const struct buf *store_get(const struct store *store, const char *key);
int store_set(struct store *store, const char *key, const char *value, size_t length);
int store_remove(struct store *store, const char *key);
/* 0, or -1 where something could not be written. */
int store_close(struct store *store);

#endif
