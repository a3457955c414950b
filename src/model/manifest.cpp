#include "model/manifest.h"

#include <set>
#include <string_view>
#include <utility>

#include "model/chunking.h"
#include "model/path.h"
#include "model/repository.h"

namespace playfs {

std::optional<std::string> FileEntry::inline_content() const {
  if (!inline_text) return std::nullopt;
  return decode_content(*inline_text, encoding);
}

bool FileEntry::same_content(const FileEntry& other) const {
  if (this == &other) return true;
  if (inline_text && other.inline_text) {
    if (encoding == other.encoding && *inline_text == *other.inline_text) return true;
    auto content = inline_content();
    return content && content == other.inline_content();
  }
  if (!inline_text && !other.inline_text && encoding == other.encoding && chunks == other.chunks) return true;
  // Content is served only if it matches a claim of this form, so equal claims cannot stand for different contents. An
  // opaque claim proves nothing.
  auto identity = ContentHash::parse(hash_claim);
  return identity && identity == ContentHash::parse(other.hash_claim);
}

bool FileEntry::same_content_and_mode(const FileEntry& other) const {
  return mode == other.mode && same_content(other);
}

std::string content_key(const FileEntry& entry) {
  if (auto hash = known_hash(entry)) return hash->hex();
  std::string key = entry.encoding == ContentEncoding::base64 ? "base64\n" : "";
  for (const auto& chunk : entry.chunks) key += chunk.text() + '\n';
  return key;
}

std::optional<ContentHash> known_hash(const FileEntry& entry) {
  if (auto content = entry.inline_content()) return ContentHash::of(*content);
  return ContentHash::parse(entry.hash_claim);
}

std::string git_mode(FileMode mode) {
  return mode == FileMode::executable ? "100755" : mode == FileMode::symlink ? "120000" : "100644";
}

const FileEntry* Manifest::file_at(std::string_view path) const {
  auto found = files.find(path);
  return found == files.end() ? nullptr : &found->second;
}

bool same_content_and_mode(const FileEntry* a, const FileEntry* b) {
  return a && b ? a->same_content_and_mode(*b) : a == b;
}

namespace {

/// Checks inline content immediately, so that no merge or other consumer ever treats it as a file.
bool is_head_of_git(const PublishedFile& file, std::string* why) {
  if (!is_named_as_head(file.path) || !is_content_of_head(file.entry)) return false;
  *why = kWhyNoHead;
  return true;
}

std::set<std::string> files_with_names_of_directories(const std::map<std::string, FileEntry, std::less<>>& files) {
  std::set<std::string> found;
  std::string_view last;
  for (const auto& [path, entry] : files) {
    const std::string_view directory = std::string_view(path).substr(0, path.rfind('/') + 1);  // npos + 1 is 0
    if (directory == std::exchange(last, directory)) continue;
    for (auto end = directory.find('/'); end != std::string_view::npos; end = directory.find('/', end + 1))
      if (auto file = files.find(directory.substr(0, end)); file != files.end()) found.insert(file->first);
  }
  return found;
}

}  // namespace

Manifest make_manifest(std::vector<PublishedFile> files) {
  Manifest manifest;
  for (auto& file : files) {
    std::string why;
    if (!TreePath::parse(file.path, &why) || is_head_of_git(file, &why)) {
      manifest.refused.push_back({std::move(file.path), std::move(why), std::move(file.published)});
    } else {
      manifest.files.emplace_hint(manifest.files.end(), file.path, std::move(file.entry));  // most are sorted
    }
  }
  const std::set<std::string> directories = files_with_names_of_directories(manifest.files);
  if (directories.empty()) return manifest;
  std::map<std::string_view, Json*> published;  // by path
  for (auto& each : files) published.emplace(each.path, &each.published);
  for (const std::string& path : directories) {
    manifest.refused.push_back({path, "a file has the name of a directory", std::move(*published.find(path)->second)});
    manifest.files.erase(path);
  }
  return manifest;
}

}  // namespace playfs
