// Reserved disk space, so that files can be removed on a full disk.
//
// Removing a name appends to the operations log, which must fit into the database eventually. So a reserve file holds
// as much space as that may need, and some for the log. On a full disk the reserve is given up, the log is
// checkpointed, spool files waiting for removal are removed, and the operation is tried once more. If even the
// checkpoint finds no space nothing is lost: the log stays, and removals go on in the space that was given up.
//
// Guarded by the stage's mutex.
#pragma once

#include "base/clock.h"
#include "stage/store/row_store.h"

namespace playfs::stage {

class Reserve {
 public:
  static constexpr const char* kFile = "/reserve";
  explicit Reserve(const std::string& directory) : path_(directory + kFile) {}

  /// Whether the reserve is there; creates it if there is space.
  [[nodiscard]] bool keep(const Rows& rows);
  /// Now and then, if it was given up.
  void keep_after_removal(const Rows& rows, const Clock& clock);
  void give_up();

 private:
  const std::string path_;
  std::uint64_t size_ = 0;  ///< bytes of disk that are reserved
  SteadyTime tried_;
};

}  // namespace playfs::stage
