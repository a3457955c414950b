// The manifest of a revision as a value: a map from path to file entry, as published, strangers' fields included.
//
// Entries that playfs will not show (a path it refuses, an entry it cannot read) are kept whole in `refused`, so
// that a commit on top carries them forward untouched. Plain values.
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

/// git's three kinds of published files.
enum class FileMode {
  regular,     ///< 100644, the default, not written out
  executable,  ///< 100755
  symlink,     ///< 120000: the content is the target
};

enum class ContentEncoding {
  text,    ///< the text is the content, as UTF-8
  base64,  ///< the text is base64 of the content (`e`)
};

/// One entry of `manifest.files`. Exactly one of `inline_text` and `chunks` carries the content; an empty file may
/// have an empty list of chunks.
struct FileEntry {
  std::string hash_claim;                            ///< `h` as published; empty where absent
  std::optional<std::uint64_t> size_claim;           ///< `s` as published, in bytes or in whatever its writer counted
  FileMode mode = FileMode::regular;                 ///< `m`
  ContentEncoding encoding = ContentEncoding::text;  ///< `e`
  std::optional<std::string> inline_text;            ///< `inline`, before decoding
  std::vector<ChunkId> chunks;                       ///< `c`
  JsonObject extra;                                  ///< fields that playfs does not know, carried forward

  bool operator==(const FileEntry&) const = default;

  /// The content without any fetch: decoded `inline`; nullopt where it is chunked or not valid base64.
  [[nodiscard]] std::optional<std::string> inline_content() const;
  /// Whether two entries have the same content and mode for sure, judged without fetching: by their text, by their
  /// chunks, or by equal claims of the form of SHA-256 (which whoever reads the content holds it to).
  [[nodiscard]] bool same_content_and_mode(const FileEntry& other) const;
};

struct RefusedEntry {
  std::string path;    ///< as published; may be anything
  std::string reason;  ///< in words for a person
  Json entry;          ///< as published
};

/// The files of a manifest that its record has no room for stand in a file of that manifest, as text (see
/// wire/continuation.h). Other clients see one plain file.
struct Continuation {
  FileEntry entry;       ///< of that file, kContinuationPath, which `Manifest::files` does not show
  bool is_read = false;  ///< `Manifest::files` has what stands in it
  bool operator==(const Continuation&) const = default;
};

struct Manifest {
  std::map<std::string, FileEntry, std::less<>> files;  ///< by path; every key is a valid TreePath
  std::vector<RefusedEntry> refused;
  JsonObject extra;  ///< fields beside `files`, carried forward
  /// `manifest.tx`: the 128-bit id (hex) of the commit that a playfs client published as this revision; mostly empty
  /// for other clients', but they may carry ours along. Sizes beside one are bytes, unless such a client wrote them.
  std::string tx;
  /// `manifest.auto`: a merge that a client made by itself. It has no content of its own, and no `tx`.
  bool is_automatic = false;
  std::optional<Continuation> continuation;
};

/// One member of `manifest.files` that could be read as an entry.
struct PublishedFile {
  std::string path;
  FileEntry entry;
  Json published;  ///< as it came, for `refused`
};

/// Sorts out what can be shown. Refused are entries whose path is no valid TreePath, and files at a path that is also
/// a directory of another file: the directory stays, since it may hold many files and the file is only one. The
/// outcome does not depend on the order. REQUIRES: no path twice.
Manifest make_manifest(std::vector<PublishedFile> files);

}  // namespace playfs
