// The stage's state of one file, directory, link, fifo, socket or device in memory. Guarded by the mutex of its stage.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "stage/stage.h"
#include "stage/store/spool.h"

namespace playfs::stage {

struct Child {
  InodePtr inode;
  std::uint64_t cookie = 0;
};

struct Directory {
  /// The base's directory that shows through, if any.
  const Tree::Directory* lower = nullptr;
  /// Nothing shows through, now or at the next start: created or moved here. All directories below are opaque too.
  bool opaque = false;
  /// All names that show through are among the children.
  bool loaded = false;
  std::map<std::string, Child, std::less<>> children;
  std::map<std::uint64_t, const std::string*> by_cookie;  ///< the keys of `children`
  std::set<std::string, std::less<>> whiteouts;           ///< deleted names of `lower`
  std::uint64_t last_cookie = 2;                          ///< 1 and 2 are reserved for "." and ".."
  std::uint32_t subdirectories = 0;
};

struct Name {
  Inode* directory = nullptr;  ///< alive while the name exists, since it owns the inode
  std::string text;
};

class Inode {
 public:
  Inode(std::uint64_t ino, Kind kind) : ino(ino), kind(kind) {}

  const std::uint64_t ino;
  const Kind kind;
  Metadata metadata;
  bool has_row = false;  ///< in the database, as are the directories above it
  std::vector<Name> names;

  std::unique_ptr<Directory> directory;  ///< for directories
  std::string target;                    ///< for symbolic links with local content
  dev_t device = 0;                      ///< for device nodes

  // Content of a regular file or link: lower (lower.entry is set) or local. A file with local content and no spool file
  // is empty.
  FileRef lower;
  SpoolFilePtr spool;
  std::uint64_t size = 0;  ///< of local bytes, while `measured`
  std::uint64_t blocks = 0;
  bool measured = false;
  bool times_ahead = false;      ///< mtime and ctime are newer than the spool file's
  unsigned writers = 0;          ///< calls that are changing the spool file without the mutex
  bool switching = false;        ///< its bytes are being copied; no write may begin
  std::uint64_t generation = 0;  ///< grows whenever the bytes change
  struct Hashed {
    std::uint64_t generation = 0;
    std::uint64_t size = 0;
    ContentHash hash;
  };
  std::optional<Hashed> hashed;
  std::optional<Error> sync_error;  ///< the result of every later sync
  /// Why the stage itself, not a user, removed the last name; empty otherwise. Open handles can still read. Writes
  /// could never be staged, so every change is refused.
  std::string superseded;

  [[nodiscard]] bool is_below() const { return lower.entry != nullptr; }
  [[nodiscard]] bool lies_at(const FileRef& from) const {
    return is_below() && lower.entry == from.entry && lower.path == from.path;
  }
  [[nodiscard]] bool is_directory() const { return kind == Kind::directory; }
  [[nodiscard]] Status check_may_change() const {
    if (superseded.empty()) return {};
    return fail(ErrorCode::stale, superseded, "open it again by its path");
  }
};

/// Whether a revision can hold this kind.
inline bool is_publishable(const Inode& inode) { return inode.kind == Kind::file || inode.kind == Kind::symlink; }

/// The mode, in git's sense, that is published for the inode's kind and permissions.
inline FileMode published_mode(const Inode& inode) {
  if (inode.kind == Kind::symlink) return FileMode::symlink;
  return (inode.metadata.permissions & 0100) != 0 ? FileMode::executable : FileMode::regular;
}

}  // namespace playfs::stage
