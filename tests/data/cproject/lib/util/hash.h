/* FNV-1a, for the hash map. Not for anything that an adversary chooses. */
#ifndef QUILL_HASH_H
#define QUILL_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t hash_bytes(const char *bytes, size_t length) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)bytes[i]) * 16777619u;
  return hash;
}

#endif
