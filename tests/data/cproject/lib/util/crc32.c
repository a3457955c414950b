#include "util/crc32.h"

uint32_t crc32_update(uint32_t crc, const void *bytes, size_t length) {
  const unsigned char *at = bytes;
  crc = ~crc;
  while (length--) {
    crc ^= *at++;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0xedb88320u & -(crc & 1u));
  }
  return ~crc;
}
