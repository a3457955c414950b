#include "util/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reserve(struct buf *buf, size_t more) {
  if (buf->length + more + 1 <= buf->room) return;
  size_t room = buf->room ? buf->room : 64;
  while (room < buf->length + more + 1) room *= 2;
  char *data = realloc(buf->data, room);
  if (!data) {
    fputs("quill: out of memory\n", stderr);
    abort();
  }
  buf->data = data;
  buf->room = room;
}

void buf_add(struct buf *buf, const void *bytes, size_t length) {
  reserve(buf, length);
  if (length) memcpy(buf->data + buf->length, bytes, length);
  buf->length += length;
  buf->data[buf->length] = '\0';
}

void buf_puts(struct buf *buf, const char *text) { buf_add(buf, text, strlen(text)); }

void buf_printf(struct buf *buf, const char *format, ...) {
  va_list measure, print;
  va_start(measure, format);
  va_copy(print, measure);
  int length = vsnprintf(NULL, 0, format, measure);
  va_end(measure);
  if (length > 0) {
    reserve(buf, (size_t)length);
    vsnprintf(buf->data + buf->length, (size_t)length + 1, format, print);
    buf->length += (size_t)length;
  }
  va_end(print);
}

int buf_read_file(struct buf *buf, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return -1;
  char piece[4096];
  size_t got;
  while ((got = fread(piece, 1, sizeof piece, file)) > 0) buf_add(buf, piece, got);
  int failed = ferror(file) ? errno : 0;
  fclose(file);
  buf_add(buf, "", 0);
  errno = failed;
  return failed ? -1 : 0;
}

void buf_free(struct buf *buf) {
  free(buf->data);
  *buf = (struct buf){0};
}
