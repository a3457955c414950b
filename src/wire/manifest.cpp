// Manifests and their entries. A known field may be spelled in equivalent ways (`m` as a number, `s` as 3.0). The
// original spelling is then kept in `extra` and written back while it still means the field's value, so that a manifest
// passes through unchanged.
#include <algorithm>
#include <array>
#include <utility>

#include "model/continuation.h"
#include "wire/ids.h"
#include "wire/records.h"

namespace playfs::wire {

namespace {

// Each read_* returns a field's meaning: its default if absent or null, nullopt if unreadable.

std::optional<FileMode> read_mode(const Json* json) {
  if (!json) return FileMode::regular;
  std::string text = json->string() ? *json->string() : json->number() ? json->number()->text : std::string();
  if (text == "100755") return FileMode::executable;
  if (text == "120000") return FileMode::symlink;
  return FileMode::regular;  // for any other mode only the content is shown
}

std::optional<ContentEncoding> read_encoding(const Json* json) {
  if (!json || json->is_null()) return ContentEncoding::text;
  auto* text = json->string();
  if (!text) return std::nullopt;
  if (*text == "base64") return ContentEncoding::base64;
  if (*text == "text" || *text == "utf-8" || *text == "utf8" || text->empty()) return ContentEncoding::text;
  return std::nullopt;  // its text would decode to wrong bytes
}

std::string read_hash(const Json* json) { return json && json->string() ? *json->string() : std::string(); }

std::optional<std::uint64_t> read_size(const Json* json) {
  auto whole = json ? json->integer() : std::nullopt;
  if (!whole || *whole < 0) return std::nullopt;  // an impossible claim counts as none
  return static_cast<std::uint64_t>(*whole);
}

std::optional<std::vector<ChunkId>> read_chunks(const Json* json) {
  if (!json || !json->array()) return std::nullopt;
  std::vector<ChunkId> chunks;
  for (const Json& item : *json->array()) {
    auto id = read_id(item);
    if (!id) return std::nullopt;
    chunks.emplace_back(*std::move(id));
  }
  return chunks;
}

bool is_absent(const Json* json) { return !json || json->is_null(); }

/// A field as playfs writes it; nullopt if it is left out as the default.
using Written = std::optional<Json>;

Written write_mode(FileMode mode) { return mode == FileMode::regular ? Written() : Json(git_mode(mode)); }

Written write_chunks(const FileEntry& entry) {
  if (entry.inline_text) return std::nullopt;
  Json::Array ids;
  for (const auto& id : entry.chunks) ids.emplace_back(id.text());
  return Json(std::move(ids));
}

struct Field {
  std::string_view name;
  Written (*written)(const FileEntry&);
  bool (*still_means)(const Json&, const FileEntry&);
};

/// An entry's known fields as playfs writes them, in order.
constexpr std::array<Field, 6> kFields = {{
    {"h", [](const FileEntry& e) { return e.hash_claim.empty() ? Written() : Written(e.hash_claim); },
     [](const Json& j, const FileEntry& e) { return read_hash(&j) == e.hash_claim; }},
    {"s", [](const FileEntry& e) { return e.size_claim ? Written(*e.size_claim) : Written(); },
     [](const Json& j, const FileEntry& e) { return read_size(&j) == e.size_claim; }},
    {"m", [](const FileEntry& e) { return write_mode(e.mode); },
     [](const Json& j, const FileEntry& e) { return read_mode(&j) == e.mode; }},
    {"e", [](const FileEntry& e) { return e.encoding == ContentEncoding::base64 ? Written("base64") : Written(); },
     [](const Json& j, const FileEntry& e) { return read_encoding(&j) == e.encoding; }},
    {"inline", [](const FileEntry& e) { return e.inline_text ? Written(*e.inline_text) : Written(); },
     // Empty text beside chunks is meaningless, and null always is.
     [](const Json& j, const FileEntry& e) {
       if (e.inline_text) return j.string() && *j.string() == *e.inline_text;
       return j.is_null() || (j.string() && j.string()->empty() && !e.chunks.empty());
     }},
    {"c", [](const FileEntry& e) { return write_chunks(e); },
     [](const Json& j, const FileEntry& e) {
       auto chunks = read_chunks(&j);
       return e.inline_text ? j.is_null() || (chunks && chunks->empty()) : chunks == e.chunks;
     }},
}};

/// Whether playfs would write the field just like this. Does not build the texts that nearly every entry has.
bool is_as_written(const Field& field, const Json& json, const FileEntry& entry) {
  if (field.name == "h") return json.string() && !json.string()->empty() && *json.string() == entry.hash_claim;
  if (field.name == "inline") return json.string() && entry.inline_text && *json.string() == *entry.inline_text;
  return field.written(entry) == json;
}

bool is_transaction_id(const Json& json) {
  auto* text = json.string();
  return text && text->size() == 32 && text->find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::optional<FileEntry> refuse(std::string* why, std::string_view reason) {
  if (why) *why = reason;
  return std::nullopt;
}

}  // namespace

std::optional<FileEntry> decode_file_entry(const Json& json, std::string* why) {
  auto* object = json.object();
  if (!object) return refuse(why, "the entry is not an object");
  if (object->had_duplicate_names) return refuse(why, "the entry repeats a field");
  auto encoding = read_encoding(object->find("e"));
  if (!encoding) return refuse(why, "the content's encoding is unknown");

  FileEntry entry;
  entry.encoding = *encoding;
  entry.hash_claim = read_hash(object->find("h"));
  entry.size_claim = read_size(object->find("s"));
  entry.mode = *read_mode(object->find("m"));

  const Json* text = object->find("inline");
  const Json* list = object->find("c");
  if (!is_absent(text) && !text->string()) return refuse(why, "the inline content is not text");
  auto chunks = is_absent(list) ? std::vector<ChunkId>() : read_chunks(list);
  if (!chunks) return refuse(why, "the list of chunks is unreadable");
  if (is_absent(text) && is_absent(list)) return refuse(why, "the entry has no content");
  bool has_text = !is_absent(text) && !text->string()->empty();
  if (has_text && !chunks->empty()) return refuse(why, "the entry has both inline content and chunks");
  if (!is_absent(text) && chunks->empty()) entry.inline_text = *text->string();
  else entry.chunks = *std::move(chunks);

  for (const auto& member : *object) {
    auto field = std::find_if(kFields.begin(), kFields.end(), [&](const Field& f) { return f.name == member.name; });
    if (field == kFields.end() || !is_as_written(*field, member.value, entry))
      entry.extra.append(member.name, member.value);
  }
  return entry;
}

Json encode_file_entry(const FileEntry& entry) {
  JsonObject object;
  for (const Field& field : kFields) {
    const Json* spelling = entry.extra.find(field.name);
    if (spelling && field.still_means(*spelling, entry)) object.append(std::string(field.name), *spelling);
    else if (auto written = field.written(entry)) object.append(std::string(field.name), *std::move(written));
  }
  for (const auto& member : entry.extra) {
    bool is_own =
        std::any_of(kFields.begin(), kFields.end(), [&](const Field& field) { return field.name == member.name; });
    if (!is_own) object.append(member.name, member.value);
  }
  return object;
}

Result<Manifest> decode_manifest(const Json& json) {
  auto* object = json.object();
  if (!object) return fail(ErrorCode::refused_input, "the manifest is not an object");
  if (object->had_duplicate_names) return fail(ErrorCode::refused_input, "the manifest repeats a field");
  std::vector<PublishedFile> readable;
  std::vector<RefusedEntry> unreadable;
  if (const Json* files = object->find("files"); !is_absent(files)) {
    if (!files->object()) return fail(ErrorCode::refused_input, "the manifest's files are not an object");
    if (files->object()->had_duplicate_names) return fail(ErrorCode::refused_input, "the manifest repeats a path");
    for (const auto& [path, entry] : *files->object()) {
      std::string why;
      if (auto decoded = decode_file_entry(entry, &why)) readable.push_back({path, *std::move(decoded), entry});
      else unreadable.push_back({path, std::move(why), entry});
    }
  }
  Manifest manifest = make_manifest(std::move(readable));
  std::move(unreadable.begin(), unreadable.end(), std::back_inserter(manifest.refused));
  for (const auto& [name, value] : *object) {
    if (name == "tx" && is_transaction_id(value)) manifest.tx = *value.string();
    else if (name == "auto" && value == Json(true)) manifest.is_automatic = true;
    else if (name != "files") manifest.extra.append(name, value);
  }
  if (auto more = manifest.files.find(kContinuationPath); more != manifest.files.end()) {
    manifest.continuation = Continuation{std::move(more->second), false};
    manifest.files.erase(more);
  }
  return manifest;
}

Json encode_manifest(const Manifest& manifest) {
  JsonObject files;
  for (const auto& [path, entry] : manifest.files) files.append(path, encode_file_entry(entry));
  for (const auto& refused : manifest.refused)
    if (!manifest.files.contains(refused.path)) files.append(refused.path, refused.entry);
  if (manifest.continuation) files.set(kContinuationPath, encode_file_entry(manifest.continuation->entry));
  JsonObject object;
  object.append("files", std::move(files));
  if (!manifest.tx.empty()) object.append("tx", manifest.tx);
  if (manifest.is_automatic) object.append("auto", true);
  for (const auto& [name, value] : manifest.extra)
    if (!object.find(name)) object.append(name, value);
  return object;
}

}  // namespace playfs::wire
