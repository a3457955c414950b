// A tree of files that commands compare: a directory of a mount, a revision, or a clone's directory. Blocking.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/manifest.h"

namespace playfs::app {

class ReadableTree {
 public:
  virtual ~ReadableTree() = default;
  /// All files and links at and below `top` ("": the root), as entry_at() describes them. Reads no contents.
  [[nodiscard]] virtual Result<Manifest> list(const std::string& top) const = 0;
  /// The mode, size and hash of a file, or the target of a link; nullopt if there is neither. Its content is unknown
  /// unless the hash is: then it is equal to nothing, and has to be read.
  [[nodiscard]] virtual Result<std::optional<FileEntry>> entry_at(const std::string& path) const = 0;
  /// The paths of entries that are published but not shown, so that nothing above tells of them; a last one of ""
  /// stands for more that are not named.
  [[nodiscard]] virtual Result<std::vector<std::string>> refused() const = 0;
  /// The bytes of a file; nullopt if there is no file, or no longer.
  [[nodiscard]] virtual Result<std::optional<std::string>> read(const std::string& path) const = 0;

  /// The bytes of a file or the target of a link, of which `entry` is the description; nullopt if it is nullptr, or the
  /// file is gone.
  [[nodiscard]] Result<std::optional<std::string>> content(const std::string& path, const FileEntry* entry) const;
};

/// Whether one of the entries that are not shown may be at, above or below the path.
bool may_be_hidden(const std::vector<std::string>& refused, const std::string& path);
/// Whether two trees have the same at a path. Reads the contents only where the entries do not tell.
Result<bool> have_the_same(const std::string& path, const ReadableTree& a, const FileEntry& in_a, const ReadableTree& b,
                           const FileEntry& in_b);

}  // namespace playfs::app
