#include "publish/request_bodies.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "model/chunking.h"
#include "wire/continuation.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {

namespace {

/// The encoded text of some content, as a stream.
class TextStream {
 public:
  TextStream(const Bytes& bytes, ContentEncoding encoding) : bytes_(bytes), encoding_(encoding) {}

  [[nodiscard]] bool at_end() const { return text_.size() == taken_ && read_ == bytes_.size(); }
  /// SHA-256 of the next `size` bytes of text; nullopt if there are fewer.
  Result<std::optional<ContentHash>> take(std::uint64_t size) {
    ContentHasher hasher;
    while (size > 0) {
      if (taken_ == text_.size()) {
        if (read_ == bytes_.size()) return std::optional<ContentHash>();
        PLAYFS_CHECK(read_on());
      }
      auto part = static_cast<std::size_t>(std::min<std::uint64_t>(size, text_.size() - taken_));
      hasher.update(std::string_view(text_).substr(taken_, part));
      taken_ += part;
      size -= part;
    }
    return std::optional(hasher.finish());
  }

 private:
  Status read_on() {
    constexpr std::uint64_t step = 48 << 10;  // a multiple of the three bytes that base64 encodes together
    auto size = static_cast<std::size_t>(std::min(step, bytes_.size() - read_));
    PLAYFS_TRY(std::string piece, bytes_.read(read_, size));
    read_ += size;
    text_ = encode_content(piece, encoding_);
    taken_ = 0;
    return {};
  }

  const Bytes& bytes_;
  const ContentEncoding encoding_;
  std::uint64_t read_ = 0;
  std::string text_;
  std::size_t taken_ = 0;
};

/// Whether the chunks, concatenated, are this text.
Result<bool> are_chunks_of(TextStream text, const std::vector<ChunkId>& chunks, const FindChunkText& known) {
  for (const auto& id : chunks) {
    PLAYFS_TRY(auto chunk, known(id));
    if (!chunk) return false;
    PLAYFS_TRY(auto hash, text.take(chunk->size));
    if (hash != chunk->hash) return false;
  }
  return text.at_end();
}

Result<bool> holds_content(const FileEntry& entry, const Bytes& content, ContentEncoding needed,
                           const FindChunkText& chunks) {
  if (entry.inline_text) {
    if (content.size() > kMaxRecordSize) return false;
    PLAYFS_TRY(std::string bytes, content.all());
    return entry.inline_content() == bytes;
  }
  // Any content can be encoded as base64, but only some as text.
  if (entry.encoding == ContentEncoding::text && needed != ContentEncoding::text) return false;
  return are_chunks_of(TextStream(content, entry.encoding), entry.chunks, chunks);
}

/// Whether `after` still has the fields that playfs does not know. Skips playfs's own fields: another client's spelling
/// of them may be among the unknown ones, and they go when their value does.
bool keeps_unknown(const JsonObject& before, const JsonObject& after, std::initializer_list<std::string_view> own) {
  return std::all_of(before.begin(), before.end(), [&](const JsonMember& member) {
    if (std::find(own.begin(), own.end(), member.name) != own.end()) return true;
    const Json* kept = after.find(member.name);
    return kept && *kept == member.value;
  });
}

bool keeps_unknown(const FileEntry& before, const FileEntry& after) {
  return keeps_unknown(before.extra, after.extra, {"h", "s", "m", "e", "inline", "c"});
}

/// Whether `entry` equals `before`, except that its inline text may have moved to chunks.
Result<bool> is_carried(const FileEntry& entry, FileEntry before, FileMode mode, const FindChunkText& chunks) {
  if (entry.mode != mode || !keeps_unknown(before, entry)) return false;
  before.mode = mode;
  if (before.inline_text && !entry.inline_text) {
    const Bytes text(*before.inline_text);
    PLAYFS_TRY(bool is_same, are_chunks_of(TextStream(text, ContentEncoding::text), entry.chunks, chunks));
    if (!is_same) return false;
    before.inline_text.reset();
    before.chunks = entry.chunks;
  }
  before.extra = entry.extra;
  return entry == before;
}

Status wrong(std::string_view path, std::string_view what) {
  return fail(ErrorCode::internal, fmt::format("the planned revision does not reproduce {}: {}", path, what));
}

Result<Manifest> manifest_of_body(std::string_view body) {
  PLAYFS_TRY(auto json, wire::parse_json(body));
  const Json* manifest = json.object() ? json.object()->find("manifest") : nullptr;
  if (!manifest) return fail(ErrorCode::internal, "the revision's body has no manifest");
  return wire::decode_manifest(*manifest);
}

bool same_file(const FileEntry& a, const FileEntry& b) {
  return a.hash_claim == b.hash_claim && a.mode == b.mode && a.encoding == b.encoding &&
         a.inline_text == b.inline_text && a.chunks == b.chunks;
}

}  // namespace

std::size_t WireSizes::entry(const FileEntry& entry) const { return json_size(wire::encode_file_entry(entry)); }
std::size_t WireSizes::revision(const RevisionDraft& draft) const {
  return json_size(wire::encode_revision_draft(draft));
}
std::size_t WireSizes::chunk(const ChunkDraft& draft) const { return json_size(wire::encode_chunk_draft(draft)); }
std::string WireSizes::continuation(const std::map<std::string, FileEntry, std::less<>>& files) const {
  return wire::continuation_text(files);
}

Status check_revision_body(std::string_view body, const Expected& expected) {
  PLAYFS_TRY(auto manifest, manifest_of_body(body));
  if (manifest.tx != expected.frozen.tx) return wrong("the commit's id", "it differs");
  if (manifest.continuation && expected.continuation.empty()) {
    show_continuation(manifest);  // somebody's plain file, carried forward
  } else if (manifest.continuation) {
    const FileEntry& more = manifest.continuation->entry;
    const Bytes text{std::string(expected.continuation)};
    PLAYFS_TRY(bool is_same, holds_content(more, text, encoding_for(expected.continuation), expected.chunks));
    if (!is_same || more.hash_claim != ContentHash::of(expected.continuation).hex())
      return wrong(kContinuationPath, "its content differs");
    PLAYFS_CHECK(wire::read_continuation(manifest, expected.continuation));
  }
  std::set<std::string_view> accounted;
  for (std::size_t i = 0; i < expected.frozen.files.size(); ++i) {
    const auto& file = expected.frozen.files[i];
    auto entry = manifest.files.find(file.path);
    if (entry == manifest.files.end()) return wrong(file.path, "it is missing or refused");
    accounted.insert(entry->first);
    if (file.published) {
      PLAYFS_TRY(bool is_same, is_carried(entry->second, *file.published, file.mode, expected.chunks));
      if (!is_same) return wrong(file.path, "it differs from what was published before");
      continue;
    }
    const Bytes& content = expected.puts[i].content;
    PLAYFS_TRY(Examined examined, examine(content));
    if (examined.hash != file.hash || entry->second.hash_claim != file.hash.hex())
      return wrong(file.path, "its hash differs");
    if (entry->second.mode != file.mode) return wrong(file.path, "its mode differs");
    PLAYFS_TRY(bool is_same, holds_content(entry->second, content, examined.encoding, expected.chunks));
    if (!is_same) return wrong(file.path, "its content differs");
    auto before = expected.base.files.find(file.path);
    if (before != expected.base.files.end() && !keeps_unknown(before->second, entry->second))
      return wrong(file.path, "an unknown field was not carried forward");
  }
  std::set<std::string_view> deleted(expected.frozen.deletions.begin(), expected.frozen.deletions.end());
  for (const auto& [path, before] : expected.base.files) {
    if (accounted.contains(path)) continue;
    auto entry = manifest.files.find(path);
    if (deleted.contains(path)) {
      if (entry != manifest.files.end()) return wrong(path, "it was deleted, but is still there");
      continue;
    }
    if (entry == manifest.files.end()) return wrong(path, "it is missing or refused");
    accounted.insert(entry->first);
    PLAYFS_TRY(bool is_same, is_carried(entry->second, before, before.mode, expected.chunks));
    if (!is_same) return wrong(path, "it differs, but was not changed");
  }
  for (const auto& before : expected.base.refused) {
    if (accounted.contains(before.path)) continue;
    // It may be readable now, because a directory in its place was deleted.
    if (auto entry = manifest.files.find(before.path); entry != manifest.files.end()) {
      accounted.insert(entry->first);
      continue;
    }
    bool kept = std::any_of(manifest.refused.begin(), manifest.refused.end(), [&](const RefusedEntry& after) {
      return after.path == before.path && after.entry == before.entry;
    });
    if (!kept) return wrong(before.path, "it was not carried forward");
  }
  for (const auto& [path, entry] : manifest.files)
    if (!accounted.contains(path)) return wrong(path, "it is unexpected");
  if (!keeps_unknown(expected.base.extra, manifest.extra, {"auto"}))
    return wrong("the manifest", "an unknown field was not carried forward");
  return {};
}

bool is_revision_of_body(const Revision& revision, std::string_view body) {
  auto json = wire::parse_json(body);
  if (!json || !json->object()) return false;
  // Decode it like the record, as if the service had returned exactly this.
  auto sent = wire::decode_revision(
      Record{.id = revision.id.text(), .created_at = {}, .updated_at = {}, .status = {}, .fields = *json->object()});
  if (!sent || revision.project != sent->project || revision.parents != sent->parents) return false;
  if (revision.manifest.tx != sent->manifest.tx) return false;
  const auto &more = revision.manifest.continuation, &sent_more = sent->manifest.continuation;
  if (more.has_value() != sent_more.has_value() || (more && !same_file(more->entry, sent_more->entry))) return false;
  return std::equal(revision.manifest.files.begin(), revision.manifest.files.end(), sent->manifest.files.begin(),
                    sent->manifest.files.end(),
                    [](const auto& a, const auto& b) { return a.first == b.first && same_file(a.second, b.second); });
}

}  // namespace playfs::publish
