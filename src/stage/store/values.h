// Values that the stage's interface shares with what it keeps on disk. Plain values.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "model/manifest.h"

namespace playfs::stage {

enum class Kind { file, directory, symlink, fifo, socket, character_device, block_device };

struct Metadata {
  unsigned permissions = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  WallTime atime, mtime, ctime;
};

/// One file of a frozen layer.
struct FrozenFile {
  std::string path;
  FileMode mode = FileMode::regular;
  ContentHash hash;  ///< of the bytes; unset if `published` is set
  std::uint64_t size = 0;
  std::optional<FileEntry> published;  ///< set if the bytes are the base's (moved, chmod-ed): the entry to carry over
  std::uint64_t spool = 0;             ///< otherwise: its frozen spool file, if there are bytes
  std::string target;                  ///< of a symbolic link, unless `published` is set
};

/// A path that an update or a merge left in conflict, to be resolved before the next commit.
struct Conflicted {
  std::string path;
  std::string reason;               ///< for a person
  bool has_markers = false;         ///< the file was left with conflict markers
  std::optional<ContentHash> left;  ///< of the bytes that were left there; nullopt: there was no file
  /// A file on one side and a directory on the other: the path of their version. Resolved once nothing is there.
  std::string beside = {};
  /// Inode of the file that was left, or of one renamed over it since; finds the file after a move. 0: unknown.
  std::uint64_t ino = 0;
  /// What is at the path is local-only, never meant to be published. Resolved once that is gone too, or the next commit
  /// is told to take it.
  bool is_kept_here = false;
  bool operator==(const Conflicted&) const = default;
};

/// Why a path is published despite the ignore rules, though the base does not have it.
enum class TrackedAs {
  taken_in,   ///< a revision that was merged in has it: a commit without it deletes what its parent has
  staged,     ///< it was staged before a rule would have ignored it
  discarded,  ///< as taken_in, and it was discarded while the merge goes on; a new file there follows the rules
};
using Tracked = std::map<std::string, TrackedAs, std::less<>>;

/// What is known of a checkpoint: what was staged at one moment, kept on this machine.
struct Checkpoint {
  std::uint64_t id = 0;  ///< counts up, never used again
  WallTime made;
  std::string message;
  RevisionId base;              ///< what it was staged on; "": nothing
  std::uint64_t paths = 0;      ///< what was staged, the project's state included
  std::uint64_t bytes = 0;      ///< of its files; others may have the same
  std::optional<Error> damage;  ///< why it cannot be read; nothing else is known then
};

}  // namespace playfs::stage
