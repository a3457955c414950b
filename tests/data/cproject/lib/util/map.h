/* A map from strings to pointers: open addressing, linear probing, deletion by shifting back. Keys are copied. */
#ifndef QUILL_MAP_H
#define QUILL_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_slot {
  char *key;
  size_t length;
  uint32_t hash;
  void *value;
};

struct map {
  struct map_slot *slots;
  size_t room, count; /* room is 0 or a power of two */
};

/* NULL where the key is not there. The pointer is good until the map changes. */
struct map_slot *map_find(const struct map *map, const char *key, size_t length);
/* Returns the value that was there before, or NULL. */
void *map_set(struct map *map, const char *key, size_t length, void *value);
void *map_remove(struct map *map, const char *key, size_t length);
/* The first taken slot at or behind *cursor, which moves on; NULL at the end. */
struct map_slot *map_next(const struct map *map, size_t *cursor);
void map_free(struct map *map);

#endif
