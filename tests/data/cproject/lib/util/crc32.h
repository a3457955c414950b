#ifndef QUILL_CRC32_H
#define QUILL_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32 as in zlib and Ethernet; start with 0 and pass the result on to continue. */
uint32_t crc32_update(uint32_t crc, const void *bytes, size_t length);

#endif
