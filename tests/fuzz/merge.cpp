// Three texts, merged line by line: base, ours and theirs, each a field.
#include "model/merge.h"
#include "fuzz.h"
#include "model/chunking.h"

using namespace playfs;

namespace {

std::string plain(std::string_view base, std::string_view ours, std::string_view theirs) {
  auto merged = merge_text(base, ours, theirs);
  FUZZ_CHECK(merged && !merged->conflicts);
  return merged->text;
}

bool has_marker_lines(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size() - 1) + 1)
    for (std::string_view marker : {"<<<<<<<", "|||||||", "=======", ">>>>>>>"})
      if (text.substr(at).starts_with(marker)) return true;
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::string_view base = input.field(), ours = input.field(), theirs = input.rest();
  for (std::string_view text : {base, ours, theirs})
    if (encoding_for(text) != ContentEncoding::text) return 0;

  FUZZ_CHECK(plain(base, base, theirs) == theirs);
  FUZZ_CHECK(plain(base, ours, base) == ours);
  FUZZ_CHECK(plain(base, ours, ours) == ours);
  auto merged = merge_text(base, ours, theirs), turned = merge_text(base, theirs, ours);
  FUZZ_CHECK(merged && turned && merged->conflicts == turned->conflicts);
  FUZZ_CHECK(merged->text.size() <= 2 * (base.size() + ours.size() + theirs.size()) + 64 * (ours.size() + 2));
  if (!merged->conflicts) FUZZ_CHECK(merged->text == turned->text);
  if (merged->conflicts) FUZZ_CHECK(has_conflict_markers(merged->text));
  const bool had_markers = has_marker_lines(base) || has_marker_lines(ours) || has_marker_lines(theirs);
  if (!merged->conflicts && !had_markers) FUZZ_CHECK(!has_conflict_markers(merged->text));

  // A search in pieces finds the same markers.
  MarkerSearch search;
  const std::size_t step = 1 + size % 11;
  for (std::size_t at = 0; at < merged->text.size(); at += step)
    search.take(std::string_view(merged->text).substr(at, step));
  FUZZ_CHECK(search.found() == has_conflict_markers(merged->text));
  return 0;
}
