// Manifests: only what a tree can contain is shown, and everything is written as it was read.
#include "fuzz.h"
#include "model/tree.h"
#include "wire/json.h"
#include "wire/records.h"

using namespace playfs;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto json = wire::parse_answer(as_text(data, size));
  if (!json) return 0;
  auto manifest = wire::decode_manifest(*json);
  if (!manifest) return 0;
  Json encoded = wire::encode_manifest(*manifest);
  const Json* files = json->object()->find("files");
  FUZZ_CHECK(!files || files->is_null() || encoded == *json);
  for (const auto& refused : manifest->refused) FUZZ_CHECK(!refused.reason.empty());
  for (const auto& [path, entry] : manifest->files) {
    FUZZ_CHECK(TreePath::parse(path).has_value());
    FUZZ_CHECK(entry.same_content_and_mode(entry));
    FUZZ_CHECK(!entry.inline_text || entry.chunks.empty());
    auto again = wire::decode_file_entry(wire::encode_file_entry(entry));
    FUZZ_CHECK(again == entry);
  }
  Tree tree(*std::move(manifest));
  for (const auto& [path, entry] : tree.manifest().files) FUZZ_CHECK(tree.file_at(path) == &entry);
  return 0;
}
