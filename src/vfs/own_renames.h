// Remembers which records this mount has renamed lately, so that what its programs have just addressed by the old name
// still goes to the same record. Later, somebody else may have given that name to another record. Thread-safe; its lock
// is a leaf.
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
  /// Call before the rename is requested, since others may see the new name before the answer arrives, and again when
  /// it has arrived.
  void note(const std::string& collection, const std::string& id, const std::string& from, const std::string& to)
      PLAYFS_EXCLUDES(mutex_);
  /// The service has refused it.
  void forget(const std::string& collection, const std::string& id, const std::string& from) PLAYFS_EXCLUDES(mutex_);
  /// Whether this mount has lately renamed the record from `before` to `now`, in one step or several.
  [[nodiscard]] bool lead(const std::string& collection, const std::string& id, const std::string& before,
                          const std::string& now) const PLAYFS_EXCLUDES(mutex_);

 private:
  using Name = std::tuple<std::string, std::string, std::string>;  ///< collection, id, name
  /// Beyond that, all are forgotten. What is addressed by an old name is then refused with an error.
  static constexpr std::size_t kMost = 10'000;
  /// Of one record, from name to name.
  static constexpr int kMostSteps = 100;
  /// Longer than names_used.h remembers a lookup. Requests that wait for longer get the new name.
  static constexpr std::chrono::seconds kLately{60};

  struct Rename {
    std::string to;
    std::chrono::steady_clock::time_point noted;
  };

  mutable Mutex mutex_;
  std::map<Name, Rename> renames_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
