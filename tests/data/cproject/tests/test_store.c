#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "store/store.h"

static void copy(const char *from, const char *to) {
  struct buf all = {0};
  buf_read_file(&all, from);
  FILE *file = fopen(to, "wb");
  fwrite(all.data, 1, all.length, file);
  fclose(file);
  buf_free(&all);
}

int main(void) {
  char path[] = "/tmp/quill-store-XXXXXX";
  close(mkstemp(path));
  struct store store;
  CHECK(store_open(&store, path) == 0);
  CHECK(store_set(&store, "a", "one", 3) == 0 && store_set(&store, "b", "two\0x", 5) == 0);
  CHECK(store_set(&store, "a", "again", 5) == 0 && store_set(&store, "c", "", 0) == 0);
  CHECK(store_remove(&store, "b") == 0 && !store_get(&store, "b"));
  CHECK(store_close(&store) == 0);

  CHECK(store_open(&store, path) == 0 && store.torn == 0);
  CHECK_TEXT(store_get(&store, "a")->data, "again");
  CHECK(store_get(&store, "c")->length == 0 && !store_get(&store, "b"));
  CHECK(store_close(&store) == 0);

  /* A write that was cut short is dropped, and what came before it is there. */
  copy("tests/data/torn.store", path);
  CHECK(store_open(&store, path) == 0 && store.torn > 0);
  CHECK_TEXT(store_get(&store, "kept")->data, "whole");
  CHECK(!store_get(&store, "lost"));
  CHECK(store_set(&store, "lost", "found", 5) == 0 && store_close(&store) == 0);
  CHECK(store_open(&store, path) == 0 && store.torn == 0);
  CHECK_TEXT(store_get(&store, "lost")->data, "found");
  CHECK(store_close(&store) == 0);

  copy("README.md", path);
  CHECK(store_open(&store, path) == -1 && errno == EINVAL);
  unlink(path);
  return DONE();
}
