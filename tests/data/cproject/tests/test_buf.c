#include "check.h"
#include "util/arena.h"
#include "util/buf.h"

int main(void) {
  struct buf buf = {0};
  buf_puts(&buf, "a");
  for (int i = 0; i < 1000; i++) buf_printf(&buf, "%d,", i);
  CHECK(buf.length == 1 + 10 * 2 + 90 * 3 + 900 * 4);
  CHECK(!memcmp(buf.data, "a0,1,2,", 7));
  buf_add(&buf, "\0b", 2);
  CHECK(buf.data[buf.length - 1] == 'b' && buf.data[buf.length] == '\0');
  buf_free(&buf);
  CHECK(buf_read_file(&buf, "tests/data/empty.ql") == 0 && buf.length == 0 && buf.data);
  CHECK(buf_read_file(&buf, "tests/data/missing") == -1);
  buf_free(&buf);

  struct arena arena = {0};
  char *small = arena_copy(&arena, "quill", 5), *big = arena_alloc(&arena, 100000);
  big[99999] = 1;
  CHECK_TEXT(small, "quill");
  CHECK(big[0] == 0 && (size_t)big % sizeof(long) == 0);
  arena_free(&arena);
  CHECK(!arena.blocks);
  return DONE();
}
