#include "wire/continuation.h"

#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "wire/json_parser.h"
#include "wire/records.h"

namespace playfs::wire {

namespace {

constexpr const char* kNote =
    "The files of this project that its manifest has no room for, one a line. playfs shows them as files.";

Status refuse(std::string_view why) {
  return fail(ErrorCode::refused_input, "the manifest's continuation cannot be read: " + std::string(why));
}

std::string_view take_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

}  // namespace

std::string continuation_text(const std::map<std::string, FileEntry, std::less<>>& files) {
  std::string text = to_text(JsonObject{{"playfs-manifest", kContinuationVersion}, {"note", kNote}}) + "\n";
  for (const auto& [path, entry] : files) {
    text += '{' + to_text(Json(path)) + ':';
    text += to_text(encode_file_entry(entry));
    text += "}\n";
  }
  return text;
}

Status read_continuation(Manifest& manifest, std::string_view text) {
  JsonParser parser;
  auto head = parser.parse(take_line(text));
  const Json* version = head && head->object() ? head->object()->find("playfs-manifest") : nullptr;
  if (!version || version->integer() != kContinuationVersion) return refuse("its format is unknown");
  // Merge both parts first, since a file in one may conflict with a directory in the other.
  std::vector<PublishedFile> all;
  std::vector<RefusedEntry> unreadable;
  std::set<std::string, std::less<>> seen;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (line.empty()) continue;
    auto json = parser.parse(line);
    JsonObject* object = json ? json->object() : nullptr;
    if (!object || object->size() != 1) return refuse("a line is not a file");
    const std::string& path = object->begin()->name;
    Json& entry = *object->find(path);
    const std::size_t known = seen.size();
    seen.emplace_hint(seen.end(), path);  // most texts are sorted
    if (seen.size() == known) return refuse("it repeats a path");
    if (manifest.files.contains(path) || path == kContinuationPath) continue;
    std::string why;
    if (auto decoded = decode_file_entry(entry, &why)) all.push_back({path, *std::move(decoded), std::move(entry)});
    else unreadable.push_back({path, std::move(why), std::move(entry)});
  }
  for (auto& [path, entry] : manifest.files) {
    Json published = encode_file_entry(entry);
    all.push_back({path, std::move(entry), std::move(published)});
  }
  Manifest whole = make_manifest(std::move(all));
  manifest.files = std::move(whole.files);
  for (auto* refused : {&whole.refused, &unreadable})
    std::move(refused->begin(), refused->end(), std::back_inserter(manifest.refused));
  manifest.continuation->is_read = true;
  return {};
}

}  // namespace playfs::wire
