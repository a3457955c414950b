// What the stage keeps of one file, directory, link, fifo, socket or device in memory. Everything is guarded by the
// mutex of the stage it belongs to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "stage/spool.h"
#include "stage/stage.h"

namespace playfs::stage {

struct Metadata {
  unsigned permissions = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  WallTime atime, mtime, ctime;
};

struct Child {
  InodePtr inode;
  std::uint64_t cookie = 0;
};

struct Directory {
  /// The base's directory that shows through, if one does.
  const Tree::Directory* lower = nullptr;
  /// Nothing shows through now or at the next start: made here, or moved here. All directories below are opaque too.
  bool opaque = false;
  /// Every name that shows through is among the children.
  bool loaded = false;
  std::map<std::string, Child, std::less<>> children;
  std::map<std::uint64_t, const std::string*> by_cookie;  ///< the keys of `children`
  std::set<std::string, std::less<>> whiteouts;           ///< names of `lower` that are gone
  std::uint64_t last_cookie = 2;                          ///< 1 and 2 are left for "." and ".."
  std::uint32_t subdirectories = 0;
};

struct Name {
  Inode* directory = nullptr;  ///< alive as long as the name exists: it holds the inode
  std::string text;
};

class Inode {
 public:
  Inode(std::uint64_t ino, Kind kind) : ino(ino), kind(kind) {}

  const std::uint64_t ino;
  const Kind kind;
  Metadata metadata;
  bool has_row = false;  ///< it is in the database, and so are the directories above it
  std::vector<Name> names;

  std::unique_ptr<Directory> directory;  ///< of a directory
  std::string target;                    ///< of a symbolic link that is not below
  dev_t device = 0;                      ///< of a device node

  // Content of a regular file or link: below (lower.entry is set), or its own. A file of its own bytes without a
  // spool file is empty.
  FileRef lower;
  SpoolFilePtr spool;
  std::uint64_t size = 0;  ///< of own bytes, while `measured`
  std::uint64_t blocks = 0;
  bool measured = false;
  bool times_ahead = false;      ///< mtime and ctime are newer than those of the spool file
  unsigned writers = 0;          ///< calls that change the spool file at this moment, without the mutex
  bool switching = false;        ///< its bytes are being copied: nobody may begin to write
  std::uint64_t generation = 0;  ///< grows whenever the bytes change
  struct Hashed {
    std::uint64_t generation = 0;
    std::uint64_t size = 0;
    ContentHash hash;
  };
  std::optional<Hashed> hashed;
  std::optional<Error> sync_error;  ///< the answer to every sync from now on
  /// The stage itself, not a user, took the last name: says why. Those who have it open may read on. What they would
  /// write could never be staged, so nothing of it may change any more. Empty: nothing of the kind.
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

/// Of a kind that a revision can hold.
inline bool is_publishable(const Inode& inode) { return inode.kind == Kind::file || inode.kind == Kind::symlink; }

/// What git calls the mode of a file: what is published of its kind and permissions.
inline FileMode published_mode(const Inode& inode) {
  if (inode.kind == Kind::symlink) return FileMode::symlink;
  return (inode.metadata.permissions & 0100) != 0 ? FileMode::executable : FileMode::regular;
}

}  // namespace playfs::stage
