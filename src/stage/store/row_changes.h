// Changes of the stage's rows, as values and as bytes for the operations log.
//
// A later start, perhaps of a later version, reads the log back: the order of RowChange's alternatives and of the
// fields of each is the format. New ones go at the end, with a new version of the database. Plain values and pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "stage/store/values.h"

namespace playfs::stage {

struct InodeRow {
  std::uint64_t ino = 0;
  Kind kind = Kind::file;
  Metadata metadata;
  std::uint64_t spool = 0;     ///< number of its spool file; 0: none
  std::string target;          ///< for symbolic links with local content
  dev_t device = 0;            ///< for device nodes
  bool opaque = false;         ///< for directories
  std::string lower_path;      ///< not empty: the bytes are those of this file...
  std::string lower_revision;  ///< ...in this revision, kept in `rescued`; empty: in the base
};

struct EntryRow {
  std::uint64_t parent = 0;
  std::string name;
  std::uint64_t ino = 0;  ///< 0: a whiteout
};

/// The bytes that a file had before it was replaced, in a spool file or a published file. They count until those of
/// `spool`, which replaced them, are known to be on disk.
struct ReplacementRow {
  std::uint64_t spool = 0;
  std::uint64_t size = 0;  ///< of the new bytes when they replaced the old ones
  std::uint64_t boot = 0;  ///< boot id at that time: after another boot the new bytes may be incomplete
  std::uint64_t old_spool = 0;
  std::string old_path;  ///< in the base
};

/// A published file that a row still references and the base no longer holds.
struct RescuedRow {
  std::string revision, project, tx;
  std::string path;
  FileEntry entry;
};

/// The minimum size of a spool file, so that bytes lost behind our back are noticed: a missing file is not an empty
/// one.
struct SizeRow {
  std::uint64_t spool = 0;
  std::uint64_t size = 0;
  std::uint64_t boot = 0;    ///< boot id for which `size` holds: a power loss may take what was not synced
  std::uint64_t synced = 0;  ///< minimum size after any power loss

  [[nodiscard]] std::uint64_t least(std::uint64_t boot_now) const {
    return boot == boot_now && boot != 0 ? size : synced;
  }
};

/// Boot id of the running system; 0 if unknown.
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
/// Sets mtime and ctime of an inode that has a row.
struct Touch {
  std::uint64_t ino = 0;
  WallTime mtime, ctime;
};
struct ClearOpaque {};
struct PutRescued {
  RescuedRow row;
};
/// Drops those that no row references.
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
/// Takes one change off the front of `bytes`; nullopt if they do not start with a valid one.
std::optional<RowChange> decode(std::string_view& bytes);

}  // namespace playfs::stage
