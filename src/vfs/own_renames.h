// Which records this mount has renamed lately: what its programs have just addressed by the old name still means the
// same record. Later the old name may be somebody else's doing. Thread-safe; its lock is a leaf.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>

#include "base/mutex.h"

namespace playfs::vfs {

class OwnRenames {
 public:
  /// Call before the service is asked for it, since others may see the new name before the answer is here; and again
  /// when it has answered.
  void note(const std::string& collection, const std::string& id, const std::string& from, const std::string& to)
      PLAYFS_EXCLUDES(mutex_);
  /// The service has refused it.
  void forget(const std::string& collection, const std::string& id, const std::string& from) PLAYFS_EXCLUDES(mutex_);
  /// Whether `now` is what this mount has lately made of the record's name `before`, in one step or several.
  [[nodiscard]] bool lead(const std::string& collection, const std::string& id, const std::string& before,
                          const std::string& now) const PLAYFS_EXCLUDES(mutex_);

 private:
  using Name = std::tuple<std::string, std::string, std::string>;  ///< collection, id, name
  /// Beyond that, all are forgotten: what is addressed by an old name is then refused, which its writer is told.
  static constexpr std::size_t kMost = 10'000;
  /// Of one record, from name to name.
  static constexpr int kMostSteps = 100;
  /// Longer than a name that was looked up is remembered (names_used.h). What waits for longer is readdressed.
  static constexpr std::chrono::seconds kLately{60};

  struct Rename {
    std::string to;
    std::chrono::steady_clock::time_point noted;
  };

  mutable Mutex mutex_;
  std::map<Name, Rename> renames_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
