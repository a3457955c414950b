#include "vfs/directories/followed_lists.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "vfs/listings.h"
#include "vfs/mount.h"
#include "vfs/published/list_fetches.h"

namespace playfs::vfs {
namespace {

/// How long the lists are kept current after the last look, if `refresh` is shorter.
constexpr std::chrono::minutes kFollowed{1};

}  // namespace

FollowedLists::FollowedLists(Mount& mount, std::vector<std::string> collections, std::optional<std::string> owner,
                             std::function<void()> each_time)
    : mount_(mount), collections_(std::move(collections)), owner_(std::move(owner)), each_time_(std::move(each_time)) {}

void FollowedLists::ask_to_be_told(const NodePtr& directory) {
  for (const std::string& collection : collections_) mount_.listings().given(collection, directory, owner_);
}

bool FollowedLists::looked(const NodePtr& directory) {
  looked_at_ = mount_.clock().steady();
  for (const std::string& collection : collections_) mount_.site().follow_list(collection);
  if (follows_.exchange(true)) return false;
  ask_to_be_told(directory);
  follow(directory);
  return true;
}

void FollowedLists::read_if_old() {
  for (const std::string& collection : collections_)
    if (!mount_.site().is_list_fresh(collection))
      mount_.site().update_list(collection, mount_.gate()->closing(), [](const Result<void>&) {});
}

void FollowedLists::follow(const NodePtr& directory) {
  mount_.later(mount_.options().refresh, [this, weak = std::weak_ptr<Node>(directory)] {
    auto self = weak.lock();
    if (!self) return;
    const auto idle = mount_.clock().steady() - looked_at_.load();
    if (idle > std::max<std::chrono::nanoseconds>(kFollowed, 2 * mount_.options().refresh)) {
      follows_ = false;
      return;
    }
    // Events bring what is new. Then only those who are looking now check it, and an idle mount sends nothing.
    if (idle <= 2 * mount_.options().refresh || !mount_.site().events_state().is_live) read_if_old();
    if (each_time_) each_time_();
    follow(self);
  });
}

void FollowedLists::listed_anew(const NodePtr& directory, std::function<void(bool is_followed)> look) {
  if (is_due_.exchange(true)) return;
  mount_.soon([this, weak = std::weak_ptr<Node>(directory), look = std::move(look)] {
    auto self = weak.lock();
    if (!self) return;
    is_due_ = false;
    if (follows_) ask_to_be_told(self);
    look(follows_);
  });
}

}  // namespace playfs::vfs
