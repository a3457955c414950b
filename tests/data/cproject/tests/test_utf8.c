#include "check.h"
#include "util/buf.h"
#include "util/fold.h"
#include "util/utf8.h"

int main(void) {
  char out[4];
  uint32_t code;
  for (uint32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 977) {
    if (c >= 0xd800 && c < 0xe000) continue;
    size_t size = utf8_encode(c, out);
    CHECK(utf8_decode(out, size, &code) == size && code == c);
    if (size > 1) CHECK(utf8_decode(out, size - 1, &code) == 0);
  }
  const char *bad[] = {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\xe2\x28\xa1"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(utf8_count(bad[i], strlen(bad[i])) == -1);
  CHECK(utf8_count("Übermut 東京 🎲", strlen("Übermut 東京 🎲")) == 12);

  struct buf names = {0};
  CHECK(buf_read_file(&names, "tests/data/names.txt") == 0);
  CHECK(utf8_count(names.data, names.length) > 100 && (size_t)utf8_count(names.data, names.length) < names.length);
  buf_free(&names);

  CHECK(fold_lower('A') == 'a' && fold_upper('z') == 'Z' && fold_lower('!') == '!');
  CHECK(fold_lower(0xc4) == 0xe4 && fold_upper(0x3b4) == 0x394 && fold_lower(0x416) == 0x436);
  for (size_t i = 1; i < fold_count; i++) CHECK(fold_table[i - 1].upper < fold_table[i].upper);
  return DONE();
}
