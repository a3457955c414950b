/* Upper and lower case of single characters, by the table in fold_table.c. */
#ifndef QUILL_FOLD_H
#define QUILL_FOLD_H

#include <stddef.h>
#include <stdint.h>

struct fold_pair {
  uint32_t upper, lower;
};
extern const struct fold_pair fold_table[]; /* sorted by upper */
extern const size_t fold_count;

uint32_t fold_lower(uint32_t code);
uint32_t fold_upper(uint32_t code);

#endif
