/* A byte string that grows. `data` is NUL-terminated whenever it is not NULL. */
#ifndef QUILL_BUF_H
#define QUILL_BUF_H

#include <stddef.h>

struct buf {
  char *data;
  size_t length, room;
};

void buf_add(struct buf *buf, const void *bytes, size_t length);
void buf_puts(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reads a whole file behind what is there; 0 or -1 with errno. */
int buf_read_file(struct buf *buf, const char *path);
void buf_free(struct buf *buf);

#endif
