// Which records this mount has renamed: what its programs have addressed by the old name still means the same record.
// Thread-safe; its lock is a leaf.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <tuple>

#include "base/mutex.h"

namespace playfs::vfs {

class OwnRenames {
 public:
  /// Call before the service is asked for it, since others may see the new name before the answer is here.
  void note(const std::string& collection, const std::string& id, const std::string& from, const std::string& to)
      PLAYFS_EXCLUDES(mutex_);
  /// The service has refused it.
  void forget(const std::string& collection, const std::string& id, const std::string& from) PLAYFS_EXCLUDES(mutex_);
  /// Whether `now` is what this mount has made of the record's name `before`, in one step or several.
  [[nodiscard]] bool lead(const std::string& collection, const std::string& id, const std::string& before,
                          const std::string& now) const PLAYFS_EXCLUDES(mutex_);

 private:
  using Name = std::tuple<std::string, std::string, std::string>;  ///< collection, id, name
  /// Beyond that, all are forgotten: what is addressed by an old name is then refused, which its writer is told.
  static constexpr std::size_t kMost = 10'000;
  /// Of one record, from name to name.
  static constexpr int kMostSteps = 100;

  mutable Mutex mutex_;
  std::map<Name, std::string> to_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
