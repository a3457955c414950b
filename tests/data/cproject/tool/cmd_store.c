#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "lang/eval.h"
#include "store/store.h"

static int open_store(struct store *store, const char *path) {
  if (store_open(store, path)) {
    fprintf(stderr, "quill: %s: %s\n", path, errno == EINVAL ? "not a store" : strerror(errno));
    return -1;
  }
  if (store->torn) fprintf(stderr, "quill: %s: %zu bytes of an interrupted write were dropped\n", path, store->torn);
  return 0;
}

static int close_store(struct store *store, int code) {
  if (!store_close(store)) return code;
  fprintf(stderr, "quill: %s\n", strerror(errno));
  return 1;
}

int cmd_get(int count, char **words) {
  (void)count;
  struct store store;
  if (open_store(&store, words[0])) return 1;
  const struct buf *value = store_get(&store, words[1]);
  if (value) printf("%s\n", value->data);
  return close_store(&store, !value);
}

int cmd_set(int count, char **words) {
  (void)count;
  struct store store;
  if (open_store(&store, words[0])) return 1;
  struct run run;
  run_start(&run);
  struct value value = run_text(&run, words[2], strlen(words[2]));
  int code = report(&run, value, 0);
  if (!code) {
    struct buf text = {0};
    value_print(&text, value);
    code = store_set(&store, words[1], text.data, text.length) != 0;
    buf_free(&text);
  }
  run_end(&run);
  return close_store(&store, code);
}

int cmd_remove(int count, char **words) {
  (void)count;
  struct store store;
  if (open_store(&store, words[0])) return 1;
  return close_store(&store, store_remove(&store, words[1]) != 0);
}
