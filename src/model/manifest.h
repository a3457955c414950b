// A revision's manifest: a map from path to file entry as published, unknown fields included.
//
// Entries that playfs does not show (unsafe path, unreadable entry) are kept verbatim in `refused`, so that later
// commits carry them forward. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/content_hash.h"
#include "model/ids.h"
#include "model/json.h"
#include "model/path.h"

namespace playfs {

/// The kinds of published files, as in git.
enum class FileMode {
  regular,     ///< 100644, the default, not written out
  executable,  ///< 100755
  symlink,     ///< 120000: the content is the target
};

/// "100644" and the like.
std::string git_mode(FileMode mode);

enum class ContentEncoding {
  text,    ///< the text is the content, in UTF-8
  base64,  ///< the text is base64 of the content (`e`)
};

/// One entry of `manifest.files`. Exactly one of `inline_text` and `chunks` carries the content; an empty file may have
/// an empty chunk list.
struct FileEntry {
  std::string hash_claim;                            ///< `h` as published; empty if absent
  std::optional<std::uint64_t> size_claim;           ///< `s` as published, in bytes or another unit of its writer
  FileMode mode = FileMode::regular;                 ///< `m`
  ContentEncoding encoding = ContentEncoding::text;  ///< `e`
  std::optional<std::string> inline_text;            ///< `inline`, before decoding
  std::vector<ChunkId> chunks;                       ///< `c`
  JsonObject extra;                                  ///< fields unknown to playfs, carried forward

  bool operator==(const FileEntry&) const = default;

  /// The decoded `inline` content, without a fetch; nullopt if chunked or invalid base64.
  [[nodiscard]] std::optional<std::string> inline_content() const;
  /// Whether the contents are certainly equal, without fetching: same text, same chunks, or equal SHA-256 claims
  /// (readers verify content against them). The modes may differ.
  [[nodiscard]] bool same_content(const FileEntry& other) const;
  [[nodiscard]] bool same_content_and_mode(const FileEntry& other) const;
};
/// Likewise; nullptr: no file.
bool same_content_and_mode(const FileEntry* a, const FileEntry* b);

/// The hash of a published file, if it is known without its bytes.
std::optional<ContentHash> known_hash(const FileEntry& entry);
/// Identifies content: by that hash, or else by its chunks.
std::string content_key(const FileEntry& entry);

struct RefusedEntry {
  std::string path;    ///< as published; arbitrary text
  std::string reason;  ///< human-readable
  Json entry;          ///< as published
};

/// A manifest too large for its record lists its files in one of its own files, as text (see wire/continuation.h).
/// Other clients see a plain file.
struct Continuation {
  FileEntry entry;       ///< of kContinuationPath, which `Manifest::files` omits
  bool is_read = false;  ///< its content has been added to `Manifest::files`
  bool operator==(const Continuation&) const = default;
};

struct Manifest {
  std::map<std::string, FileEntry, std::less<>> files;  ///< by path; every key is a valid TreePath
  std::vector<RefusedEntry> refused;
  JsonObject extra;  ///< fields beside `files`, carried forward
  /// `manifest.tx`: 128-bit id (hex) of the playfs commit published as this revision. Usually empty in other clients'
  /// revisions, but they may copy ours. With a `tx`, sizes are in bytes unless such a client wrote them.
  std::string tx;
  /// `manifest.auto`: a merge that a client made automatically. It contributes no content and has no `tx`.
  bool is_automatic = false;
  std::optional<Continuation> continuation;

  /// nullptr if none.
  [[nodiscard]] const FileEntry* file_at(std::string_view path) const;
};

/// A member of `manifest.files` that parsed as an entry.
struct PublishedFile {
  std::string path;
  FileEntry entry;
  Json published;  ///< as received, for `refused`
};

/// Separates the entries that can be shown. Refuses entries whose path is not a valid TreePath, and files whose path is
/// also a directory of another file: the directory stays, as it may hold many files. The result does not depend on the
/// order. REQUIRES: distinct paths.
Manifest make_manifest(std::vector<PublishedFile> files);

}  // namespace playfs
