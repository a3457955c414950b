// A stage's rows as bytes. The first byte says what the rest is: changes of rows, a manifest entry, or a list of
// conflicts. Whatever can be read is written and reads back the same.
#include "fuzz.h"
#include "stage/store/entry_codec.h"
#include "stage/store/row_changes.h"

using namespace playfs;
using namespace playfs::stage;

namespace {

void check_changes(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t before = bytes.size();
    auto change = decode(bytes);
    if (!change) return;
    FUZZ_CHECK(bytes.size() < before);
    std::string written, again;
    encode(written, *change);
    std::string_view rest = written;
    auto back = decode(rest);
    FUZZ_CHECK(back && rest.empty() && back->index() == change->index());
    encode(again, *back);
    FUZZ_CHECK(again == written);
  }
}

void check_entry(std::string_view bytes) {
  auto entry = decode_entry(bytes);
  if (!entry) return;
  FUZZ_CHECK(decode_entry(encode_entry(*entry)) == entry);
}

void check_conflicts(std::string_view text) {
  auto list = decode_conflicted(text);
  if (!list) return;
  auto again = decode_conflicted(encode_conflicted(*list));
  FUZZ_CHECK(again && again->size() == list->size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Conflicted &a = (*list)[i], &b = (*again)[i];
    FUZZ_CHECK(a.path == b.path && a.reason == b.reason && a.has_markers == b.has_markers);
    FUZZ_CHECK(a.left == b.left && a.beside == b.beside);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const auto kind = input.byte() % 3;
  if (kind == 0) check_changes(input.rest());
  else if (kind == 1) check_entry(input.rest());
  else check_conflicts(input.rest());
  return 0;
}
