// A manifest that continues in a text: two fields, the manifest and the text. What the text adds can be shown beside
// the rest, and is written as it was read; a text that is refused changes nothing.
#include "wire/continuation.h"

#include "fuzz.h"
#include "model/tree.h"
#include "wire/json.h"
#include "wire/records.h"

using namespace playfs;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Manifest manifest;
  if (auto json = wire::parse_answer(input.field()))
    if (auto decoded = wire::decode_manifest(*json)) manifest = *std::move(decoded);
  manifest.files.erase(kContinuationPath);
  manifest.continuation = Continuation{};
  const Manifest before = manifest;
  if (!wire::read_continuation(manifest, input.rest())) {
    FUZZ_CHECK(manifest.files == before.files && manifest.refused.size() == before.refused.size());
    FUZZ_CHECK(manifest.continuation && !manifest.continuation->is_read);
    return 0;
  }
  FUZZ_CHECK(manifest.continuation && manifest.continuation->is_read);
  FUZZ_CHECK(!manifest.files.contains(kContinuationPath));
  auto is_refused = [&](const std::string& path) {
    return std::any_of(manifest.refused.begin(), manifest.refused.end(), [&](auto& each) { return each.path == path; });
  };
  for (const auto& [path, entry] : before.files) {
    auto now = manifest.files.find(path);
    FUZZ_CHECK(now == manifest.files.end() ? is_refused(path) : now->second == entry);
  }
  for (const auto& [path, entry] : manifest.files) FUZZ_CHECK(TreePath::parse(path).has_value());

  Manifest again;
  again.continuation = Continuation{};
  FUZZ_CHECK(wire::read_continuation(again, wire::continuation_text(manifest.files)));
  FUZZ_CHECK(again.files == manifest.files && again.refused.empty());
  Tree tree(std::move(manifest));
  for (const auto& [path, entry] : tree.manifest().files) FUZZ_CHECK(tree.file_at(path) == &entry);
  return 0;
}
