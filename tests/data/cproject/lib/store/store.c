#include "store/store.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/crc32.h"

static const char magic[8] = "QUILLKV1";
enum { HEADER = 12 };
static const uint32_t gone = 0xffffffffu; /* as a value's length: the key is removed */

static void put32(unsigned char *out, uint32_t value) {
  for (int i = 0; i < 4; i++) out[i] = (unsigned char)(value >> (8 * i));
}
static uint32_t get32(const unsigned char *in) {
  return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

static void forget(struct store *store, const char *key, size_t length) {
  struct buf *old = map_remove(&store->entries, key, length);
  if (old) buf_free(old);
  free(old);
}

static void remember(struct store *store, const char *key, size_t key_length, const char *value, size_t length) {
  forget(store, key, key_length);
  struct buf *copy = calloc(1, sizeof *copy);
  buf_add(copy, value, length);
  map_set(&store->entries, key, key_length, copy);
}

/* Takes in whole records; returns the number of bytes that they fill. */
static size_t load(struct store *store, const char *data, size_t length) {
  size_t at = sizeof magic;
  while (length - at >= HEADER) {
    const unsigned char *head = (const unsigned char *)data + at;
    uint32_t key = get32(head + 4), value = get32(head + 8), body = key + (value == gone ? 0 : value);
    if (key > 1u << 20 || (value != gone && value > 1u << 28) || length - at - HEADER < body) break;
    if (crc32_update(0, head + 4, 8 + (size_t)body) != get32(head)) break;
    const char *text = data + at + HEADER;
    if (value == gone) forget(store, text, key);
    else remember(store, text, key, text + key, value);
    at += HEADER + body;
  }
  return at;
}

int store_open(struct store *store, const char *path) {
  *store = (struct store){0};
  struct buf all = {0};
  if (buf_read_file(&all, path) && errno != ENOENT) return -1;
  store->file = fopen(path, all.length ? "r+b" : "w+b");
  if (!store->file) return buf_free(&all), -1;
  if (all.length == 0) {
    fwrite(magic, 1, sizeof magic, store->file);
  } else if (all.length < sizeof magic || memcmp(all.data, magic, sizeof magic) != 0) {
    buf_free(&all);
    store_close(store);
    return errno = EINVAL, -1;
  } else {
    size_t whole = load(store, all.data, all.length);
    store->torn = all.length - whole;
    if (store->torn && ftruncate(fileno(store->file), (off_t)whole)) return buf_free(&all), store_close(store), -1;
    fseek(store->file, 0, SEEK_END);
  }
  buf_free(&all);
  return 0;
}

const struct buf *store_get(const struct store *store, const char *key) {
  const struct map_slot *slot = map_find(&store->entries, key, strlen(key));
  return slot ? slot->value : NULL;
}

static int append(struct store *store, const char *key, const char *value, uint32_t value_length) {
  unsigned char head[HEADER];
  size_t key_length = strlen(key), body = value_length == gone ? 0 : value_length;
  put32(head + 4, (uint32_t)key_length);
  put32(head + 8, value_length);
  uint32_t crc = crc32_update(0, head + 4, 8);
  crc = crc32_update(crc, key, key_length);
  put32(head, crc32_update(crc, value, body));
  fwrite(head, 1, sizeof head, store->file);
  fwrite(key, 1, key_length, store->file);
  fwrite(value, 1, body, store->file);
  return fflush(store->file) ? -1 : 0;
}

int store_set(struct store *store, const char *key, const char *value, size_t length) {
  if (append(store, key, value, (uint32_t)length)) return -1;
  remember(store, key, strlen(key), value, length);
  return 0;
}

int store_remove(struct store *store, const char *key) {
  if (append(store, key, "", gone)) return -1;
  forget(store, key, strlen(key));
  return 0;
}

int store_close(struct store *store) {
  size_t cursor = 0;
  for (struct map_slot *slot; (slot = map_next(&store->entries, &cursor));) {
    buf_free(slot->value);
    free(slot->value);
  }
  map_free(&store->entries);
  return store->file && fclose(store->file) ? -1 : 0;
}
