// Changes of the stage's rows as values, and as bytes for the operations log.
//
// What the log holds is read back by a later start, perhaps of a later version: the order of RowChange's alternatives
// and of the fields of each is the format. New ones are added at the end, with a new version of the database.
// Plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "stage/inode.h"

namespace playfs::stage {

struct InodeRow {
  std::uint64_t ino = 0;
  Kind kind = Kind::file;
  Metadata metadata;
  std::uint64_t spool = 0;     ///< number of its spool file; 0: none
  std::string target;          ///< of a symbolic link of its own
  dev_t device = 0;            ///< of a device node
  bool opaque = false;         ///< of a directory
  std::string lower_path;      ///< not empty: its bytes are those of this file...
  std::string lower_revision;  ///< ...of this revision, kept in `rescued`; empty: of the base
};

struct EntryRow {
  std::uint64_t parent = 0;
  std::string name;
  std::uint64_t ino = 0;  ///< 0: a whiteout
};

/// The bytes that a file had before it was replaced: they count until those of `spool`, which replaced them, are known
/// to be on disk. A spool file, or a published file.
struct ReplacementRow {
  std::uint64_t spool = 0;
  std::uint64_t size = 0;  ///< of its bytes when they replaced the old ones
  std::uint64_t boot = 0;  ///< of the system that has them: after another boot nobody knows what there is of them
  std::uint64_t old_spool = 0;
  std::string old_path;  ///< of the base
};

/// A published file that a row still refers to and that the base no longer holds.
struct RescuedRow {
  std::string revision, project, tx;
  std::string path;
  FileEntry entry;
};

/// How long a spool file is at least, so that bytes which go behind our back are missed: an absent file is no empty
/// one.
struct SizeRow {
  std::uint64_t spool = 0;
  std::uint64_t size = 0;
  std::uint64_t boot = 0;    ///< of the system for which that holds: a power loss may take what was not synced
  std::uint64_t synced = 0;  ///< what it is at least after any power loss

  [[nodiscard]] std::uint64_t least(std::uint64_t boot_now) const {
    return boot == boot_now && boot != 0 ? size : synced;
  }
};

/// Of the system that runs now; 0 where it does not say.
std::uint64_t boot_of_system();

struct PutInode {
  InodeRow row;
};
struct DropInode {
  std::uint64_t ino = 0;
};
struct PutEntry {
  EntryRow row;
};
struct DropEntry {
  std::uint64_t parent = 0;
  std::string name;
};
struct DropWhiteouts {
  std::uint64_t parent = 0;
};
/// mtime and ctime of an inode that has a row.
struct Touch {
  std::uint64_t ino = 0;
  WallTime mtime, ctime;
};
struct ClearOpaque {};
struct PutRescued {
  RescuedRow row;
};
/// Those that no row refers to.
struct DropUnusedRescued {};
struct PutValue {
  std::string key, value;
};
struct DropValue {
  std::string key;
};
struct PutTime {
  std::string path;
  WallTime time;
};
struct DropTime {
  std::string path;
};
struct PutPending {
  FrozenFile file;
};
struct PutPendingDeletion {
  std::string path;
};
struct DropPending {};
struct PutReplacement {
  ReplacementRow row;
};
struct DropReplacement {
  std::uint64_t spool = 0;
};
struct PutSize {
  SizeRow row;
};

using RowChange = std::variant<PutInode, DropInode, PutEntry, DropEntry, DropWhiteouts, Touch, ClearOpaque, PutRescued,
                               DropUnusedRescued, PutValue, DropValue, PutTime, DropTime, PutPending,
                               PutPendingDeletion, DropPending, PutReplacement, DropReplacement, PutSize>;

void encode(std::string& bytes, const RowChange& change);
/// Takes one off the front of `bytes`; nullopt where they begin with none.
std::optional<RowChange> decode(std::string_view& bytes);

}  // namespace playfs::stage
