#include "util/fold.h"

uint32_t fold_lower(uint32_t code) {
  size_t low = 0, high = fold_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (fold_table[middle].upper == code) return fold_table[middle].lower;
    if (fold_table[middle].upper < code) low = middle + 1;
    else high = middle;
  }
  return code;
}

/* The table is sorted the other way; text is short, and the ASCII part is answered at once. */
uint32_t fold_upper(uint32_t code) {
  if (code < 0x80) return code >= 'a' && code <= 'z' ? code - 32 : code;
  for (size_t i = 0; i < fold_count; i++)
    if (fold_table[i].lower == code) return fold_table[i].upper;
  return code;
}
