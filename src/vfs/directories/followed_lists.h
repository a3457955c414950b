// The lists that files or listings are made of, while somebody looks at those: they are kept current, and their change
// is told, without being asked for again. A part of a directory, which it needs alive. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "vfs/node.h"

namespace playfs::vfs {

class FollowedLists {
 public:
  /// `owner`: only changes of its records are told. `each_time` runs whenever the lists' age is looked at.
  FollowedLists(Mount& mount, std::vector<std::string> collections, std::optional<std::string> owner = {},
                std::function<void()> each_time = {});

  [[nodiscard]] const std::vector<std::string>& collections() const { return collections_; }
  /// Somebody looks at `directory`. Returns whether the lists were not being followed. From now on its listed_anew() is
  /// called, until nobody has looked for a while.
  bool looked(const NodePtr& directory);
  /// Has the lists read, as far as they may be outdated.
  void read_if_old();
  /// For the directory's listed_anew(): runs `look` soon, once for all calls until then.
  void listed_anew(const NodePtr& directory, std::function<void(bool is_followed)> look);

 private:
  void follow(const NodePtr& directory);
  void ask_to_be_told(const NodePtr& directory);

  Mount& mount_;
  const std::vector<std::string> collections_;
  const std::optional<std::string> owner_;
  const std::function<void()> each_time_;
  std::atomic<SteadyTime> looked_at_{};
  std::atomic<bool> follows_ = false;
  std::atomic<bool> is_due_ = false;
};

}  // namespace playfs::vfs
