// Tracks which names of records the kernel has cached, so that they are invalidated as soon as an event reports a
// change. Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "vfs/node.h"

namespace playfs::vfs {

class ToldNames {
 public:
  explicit ToldNames(Mount& mount) : mount_(mount) {}

  /// Call before the kernel gets a name in `directory` that shows the record. `is_current`, called after that: whether
  /// what the name shows is known to be current. Returns how many seconds the kernel may keep it.
  template <class IsCurrent>
  double given(const std::string& collection, const std::string& id, const NodePtr& directory, const std::string& name,
               IsCurrent is_current) {
    note(collection, id, directory, name);
    return seconds(is_current());
  }

 private:
  struct Name {
    std::weak_ptr<Node> directory;
    std::string name;
  };
  using Names = std::map<std::string, std::vector<Name>>;  ///< by "collection/id"
  /// Above this, all of them are invalidated, and the kernel asks for those in use again.
  static constexpr std::size_t kMost = 16'384;

  void note(const std::string& collection, const std::string& id, const NodePtr& directory, const std::string& name)
      PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] double seconds(bool is_current) const;
  void changed(const std::string& collection, const std::string& id) PLAYFS_EXCLUDES(mutex_);
  void invalidate_all() PLAYFS_EXCLUDES(mutex_);
  void invalidate(const std::vector<Name>& names);

  Mount& mount_;
  Mutex mutex_;
  bool begun_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::size_t count_ PLAYFS_GUARDED_BY(mutex_) = 0;
  Names names_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
