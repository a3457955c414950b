// Follows the lists from which a directory's files or listing are derived, while programs look at these: the lists are
// kept current, and changes are reported, without a request for each look. Owned by the directory. Thread-safe.
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
  /// `owner`: report only changes of its records. `each_time` runs whenever the lists' age is checked.
  FollowedLists(Mount& mount, std::vector<std::string> collections, std::optional<std::string> owner = {},
                std::function<void()> each_time = {});

  [[nodiscard]] const std::vector<std::string>& collections() const { return collections_; }
  /// Call when a program looks at `directory`. From now on its listed_anew() is called for each change, until nobody
  /// has looked for a while. Returns whether the lists were not being followed before.
  bool looked(const NodePtr& directory);
  /// Requests those lists that may be outdated.
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
