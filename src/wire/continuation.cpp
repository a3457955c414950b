#include "wire/continuation.h"

#include <iterator>

#include "wire/json.h"
#include "wire/records.h"

namespace playfs::wire {

std::string continuation_text(const std::map<std::string, FileEntry, std::less<>>& files) {
  std::string text = R"({"version": 1, "files": {)";
  std::string_view separator = "\n";
  for (const auto& [path, entry] : files) {
    text += separator;
    text += to_text(Json(path)) + ": " + to_text(encode_file_entry(entry));
    separator = ",\n";
  }
  text += "\n}}\n";
  return text;
}

Status read_continuation(Manifest& manifest, std::string_view text) {
  PLAYFS_TRY(Json json, parse_json(text));
  auto* object = json.object();
  const Json* version = object ? object->find("version") : nullptr;
  const Json* files = object ? object->find("files") : nullptr;
  if (!version || version->integer() != kContinuationVersion || !files || !files->object())
    return fail(ErrorCode::refused_input, "the manifest goes on in a form that is not known");
  if (files->object()->had_duplicate_names)
    return fail(ErrorCode::refused_input, "the manifest's continuation names a path twice");
  // All together, since a file of one part may stand where the other has a directory.
  std::vector<PublishedFile> all;
  std::vector<RefusedEntry> unreadable;
  for (auto& [path, entry] : manifest.files) {
    Json published = encode_file_entry(entry);
    all.push_back({path, std::move(entry), std::move(published)});
  }
  for (const auto& [path, entry] : *files->object()) {
    if (manifest.files.contains(path) || path == manifest.continuation->path) continue;
    std::string why;
    if (auto decoded = decode_file_entry(entry, &why)) all.push_back({path, *std::move(decoded), entry});
    else unreadable.push_back({path, std::move(why), entry});
  }
  Manifest whole = make_manifest(std::move(all));
  manifest.files = std::move(whole.files);
  for (auto* refused : {&whole.refused, &unreadable})
    std::move(refused->begin(), refused->end(), std::back_inserter(manifest.refused));
  manifest.continuation->is_read = true;
  return {};
}

}  // namespace playfs::wire
