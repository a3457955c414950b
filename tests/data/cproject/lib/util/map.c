#include "util/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/hash.h"

static void *checked(void *memory) {
  if (!memory) {
    fputs("quill: out of memory\n", stderr);
    abort();
  }
  return memory;
}

/* The slot of the key, or the free one where it would go. */
static struct map_slot *probe(const struct map *map, const char *key, size_t length, uint32_t hash) {
  for (size_t i = hash & (map->room - 1);; i = (i + 1) & (map->room - 1)) {
    struct map_slot *slot = &map->slots[i];
    if (!slot->key || (slot->hash == hash && slot->length == length && !memcmp(slot->key, key, length))) return slot;
  }
}

static void grow(struct map *map) {
  struct map bigger = {.room = map->room ? map->room * 2 : 8, .count = map->count};
  bigger.slots = checked(calloc(bigger.room, sizeof *bigger.slots));
  for (size_t i = 0; i < map->room; i++) {
    const struct map_slot *slot = &map->slots[i];
    if (slot->key) *probe(&bigger, slot->key, slot->length, slot->hash) = *slot;
  }
  free(map->slots);
  *map = bigger;
}

struct map_slot *map_find(const struct map *map, const char *key, size_t length) {
  if (!map->room) return NULL;
  struct map_slot *slot = probe(map, key, length, hash_bytes(key, length));
  return slot->key ? slot : NULL;
}

void *map_set(struct map *map, const char *key, size_t length, void *value) {
  if ((map->count + 1) * 4 > map->room * 3) grow(map);
  uint32_t hash = hash_bytes(key, length);
  struct map_slot *slot = probe(map, key, length, hash);
  void *before = slot->value;
  if (!slot->key) {
    slot->key = checked(malloc(length + 1));
    memcpy(slot->key, key, length);
    slot->key[length] = '\0';
    slot->length = length;
    slot->hash = hash;
    map->count++;
  }
  slot->value = value;
  return before;
}

void *map_remove(struct map *map, const char *key, size_t length) {
  struct map_slot *slot = map_find(map, key, length);
  if (!slot) return NULL;
  void *value = slot->value;
  free(slot->key);
  map->count--;
  /* Shift back what probing would no longer reach past the hole. */
  size_t hole = (size_t)(slot - map->slots), mask = map->room - 1;
  for (size_t i = (hole + 1) & mask; map->slots[i].key; i = (i + 1) & mask) {
    size_t home = map->slots[i].hash & mask;
    if (((i - home) & mask) >= ((i - hole) & mask)) {
      map->slots[hole] = map->slots[i];
      hole = i;
    }
  }
  map->slots[hole] = (struct map_slot){0};
  return value;
}

struct map_slot *map_next(const struct map *map, size_t *cursor) {
  while (*cursor < map->room) {
    struct map_slot *slot = &map->slots[(*cursor)++];
    if (slot->key) return slot;
  }
  return NULL;
}

void map_free(struct map *map) {
  for (size_t i = 0; i < map->room; i++) free(map->slots[i].key);
  free(map->slots);
  *map = (struct map){0};
}
