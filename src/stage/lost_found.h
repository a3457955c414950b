// What a stage cannot account for is kept: in folders of `lost+found/` in its directory, with a list of what the files
// were called. Plain functions over files; for one thread, with the stage's lock held.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/result.h"
#include "stage/row_changes.h"

namespace playfs::stage {

/// What spool files are called, by rows and operations; what is added later counts.
class SpoolNames {
 public:
  void add(const RowChange& change);
  void add(const EntryRow& row);
  void add_file(std::uint64_t spool, std::uint64_t ino) { files_[spool] = ino; }
  /// All operations of the log in `directory` that can be read, also behind a damage, and of whatever stage they are:
  /// the database may no longer know which one this is.
  void add_log(const std::string& directory);
  /// "spool/NUMBER<tab>path" for each file that is called something; of the directories above it, those whose names are
  /// known.
  [[nodiscard]] std::string list() const;
  /// Of one spool file; "" where it is called nothing.
  [[nodiscard]] std::string path_of(std::uint64_t spool) const;

 private:
  std::unordered_map<std::uint64_t, std::pair<std::uint64_t, std::string>> names_;  ///< of inodes: directory and name
  std::map<std::uint64_t, std::uint64_t> files_;                                    ///< the inode of each spool file
};

/// A folder of lost+found that was not there before: nothing in it can be written over.
Result<std::string> new_lost_folder(const std::string& directory, const std::string& label);
/// What is not there need not be moved.
Status move_to(const std::string& from, const std::string& to);
/// The operations log as it is.
Status copy_log(const std::string& directory, const std::string& folder);

}  // namespace playfs::stage
