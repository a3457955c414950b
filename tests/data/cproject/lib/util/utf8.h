/* UTF-8, strictly: overlong forms, surrogates and values past U+10FFFF are errors. */
#ifndef QUILL_UTF8_H
#define QUILL_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes one character of text[0..length) into *code; its length in bytes, or 0 where it is not valid. */
size_t utf8_decode(const char *text, size_t length, uint32_t *code);
/* Encodes into out[0..4); the length in bytes. */
size_t utf8_encode(uint32_t code, char *out);
/* The number of characters, or -1 where the text is not valid. */
long utf8_count(const char *text, size_t length);

#endif
