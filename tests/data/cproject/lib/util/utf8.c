#include "util/utf8.h"

size_t utf8_decode(const char *text, size_t length, uint32_t *code) {
  const unsigned char *s = (const unsigned char *)text;
  if (length == 0) return 0;
  if (s[0] < 0x80) {
    *code = s[0];
    return 1;
  }
  size_t size = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
  if (s[0] < 0xc2 || s[0] > 0xf4 || size > length) return 0;
  uint32_t value = s[0] & (0xffu >> (size + 1));
  for (size_t i = 1; i < size; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
    value = value << 6 | (s[i] & 0x3f);
  }
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < least[size] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return 0;
  *code = value;
  return size;
}

size_t utf8_encode(uint32_t code, char *out) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = size; --i > 0; code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
  static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  out[0] = (char)(lead[size] | code);
  return size;
}

long utf8_count(const char *text, size_t length) {
  long count = 0;
  uint32_t code;
  for (size_t at = 0, size; at < length; at += size, count++) {
    size = utf8_decode(text + at, length - at, &code);
    if (!size) return -1;
  }
  return count;
}
