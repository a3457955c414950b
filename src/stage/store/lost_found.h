// Keeps what a stage cannot account for in folders of `lost+found/` in its directory, with a list of the files' paths.
// Single-threaded; the caller holds the stage's lock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/result.h"
#include "stage/store/row_changes.h"

namespace playfs::stage {

/// Paths of spool files, from rows and operations; later additions win.
class SpoolNames {
 public:
  void add(const RowChange& change);
  void add(const EntryRow& row);
  void add_file(std::uint64_t spool, std::uint64_t ino) { files_[spool] = ino; }
  /// Adds all readable operations of the log in `directory`, also behind damage and of any stage id: the database may
  /// no longer know the right one.
  void add_log(const std::string& directory);
  /// "spool/NUMBER<tab>path" for each file with a known name; unknown directories above it are left out.
  [[nodiscard]] std::string list() const;
  /// Path of one spool file; "" if unknown.
  [[nodiscard]] std::string path_of(std::uint64_t spool) const;

 private:
  std::unordered_map<std::uint64_t, std::pair<std::uint64_t, std::string>> names_;  ///< by inode: directory and name
  std::map<std::uint64_t, std::uint64_t> files_;                                    ///< inode by spool file
};

/// Creates a folder of lost+found that did not exist, so that nothing is overwritten.
Result<std::string> new_lost_folder(const std::string& directory, const std::string& label);
/// A missing `from` is no error.
Status move_to(const std::string& from, const std::string& to);
/// Copies the operations log unchanged.
Status copy_log(const std::string& directory, const std::string& folder);

}  // namespace playfs::stage
