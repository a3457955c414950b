#include "check.h"
#include "util/crc32.h"
#include "util/map.h"

int main(void) {
  static int numbers[500];
  struct map map = {0};
  char key[16];
  CHECK(!map_find(&map, "a", 1));
  for (int i = 0; i < 500; i++) map_set(&map, key, (size_t)sprintf(key, "key%d", i), &numbers[i]);
  CHECK(map.count == 500);
  /* Take out every third; the rest must still be found across the holes. */
  for (int i = 0; i < 500; i += 3) CHECK(map_remove(&map, key, (size_t)sprintf(key, "key%d", i)) == &numbers[i]);
  for (int i = 0; i < 500; i++) {
    struct map_slot *slot = map_find(&map, key, (size_t)sprintf(key, "key%d", i));
    CHECK(i % 3 ? slot && slot->value == &numbers[i] : !slot);
  }
  CHECK(!map_remove(&map, "key0", 4));
  CHECK(map_set(&map, "key1", 4, &numbers[7]) == &numbers[1]);
  CHECK(map_set(&map, "k\0y", 3, &numbers[8]) == NULL && map_find(&map, "k\0y", 3) && !map_find(&map, "k", 1));
  size_t seen = 0, cursor = 0;
  while (map_next(&map, &cursor)) seen++;
  CHECK(seen == map.count);
  map_free(&map);

  CHECK(crc32_update(0, "123456789", 9) == 0xcbf43926u);
  CHECK(crc32_update(crc32_update(0, "1234", 4), "56789", 5) == 0xcbf43926u);
  return DONE();
}
