// What a work tree would publish, as found in one scan of it. Plain values; the inodes are guarded by the stage's
// mutex.
#pragma once

#include "stage/inode.h"

namespace playfs::stage {

/// A path that would be published differently from the base.
struct Difference {
  std::string path;
  InodePtr inode;                   ///< nullptr: deleted
  const FileEntry* base = nullptr;  ///< nullptr: added, or a deletion of what was merged in
  /// Only comparing the bytes, as of `generation`, decides.
  bool uncertain = false;
  bool may_be_frozen = false;  ///< likewise for the pending layer's file at the path
  std::uint64_t generation = 0;
};

struct Survey {
  RevisionTreePtr base;  ///< owns the entries that differences point to
  std::vector<Difference> differences;
  std::vector<std::string> unpublished;  ///< directories have a trailing slash
  std::vector<FileRef> missing_rules;    ///< lower rule files whose bytes are not available
  std::optional<Error> unread_rules;     ///< why a rule file could not be read: what it ignores is unknown
};

struct FileDigest {
  std::uint64_t size = 0;
  ContentHash hash;
};
/// REQUIRES: the file does not change meanwhile, or the result is dropped if it did.
Result<FileDigest> digest(Spool& spool, SpoolFile& file);

/// The hash of a published file's bytes, if it can be known without them.
std::optional<ContentHash> hash_of(const FileEntry& entry);
/// Likewise of an inode's own bytes.
std::optional<ContentHash> hash_of(const Inode& inode);
/// Whether `entry` is known to have bytes with that hash.
/// Content and mode of what a base has at a path, as one word; "": no file. Without a known hash it equals no other.
std::string base_content(const FileEntry* entry);
bool is_content_of(const ContentHash& hash, const FileEntry& entry);

}  // namespace playfs::stage
