#include "vfs/directories/growing_directory.h"

#include <algorithm>

#include "vfs/attempt_driver.h"
#include "vfs/attempt_fetches.h"
#include "vfs/control/growing_file.h"
#include "vfs/listings.h"
#include "vfs/published/list_fetches.h"

namespace playfs::vfs {
namespace {

/// How long the lists are kept current after the last look, if `refresh` is shorter.
constexpr std::chrono::minutes kFollowed{1};

}  // namespace

GrowingDirectory::GrowingDirectory(Mount& mount, NodePtr parent, std::string name, std::vector<std::string> files,
                                   std::vector<std::string> collections)
    : VirtualDirectory(mount, std::move(parent), std::move(name)),
      files_(std::move(files)),
      collections_(std::move(collections)) {}

bool GrowingDirectory::grows(const std::string& name) const {
  return std::find(files_.begin(), files_.end(), name) != files_.end();
}

Attempt<LookupResult> GrowingDirectory::growing_file(const OperationPtr& op, const std::string& name,
                                                     const std::string& text, std::uint64_t reading) {
  auto look = [weak = weak_from_this()] {
    auto self = std::static_pointer_cast<GrowingDirectory>(weak.lock());
    if (!self || !self->looked()) return;
    // A reader that was stopped for longer than the lists are followed has missed changes, and goes on with its file.
    self->read_if_old();
    self->listed_anew();
  };
  auto file = children().get<GrowingFile>(
      name, [&](GrowingFile& growing) { return growing.grow_to(text, reading); },
      [&] { return std::make_shared<GrowingFile>(mount(), shared_from_this(), name, text, reading, look); });
  // Who has just written looks for it.
  const std::string fact = "shown/" + name;
  if (!op->noted(kGoesOn) && !file->shows_its_size() && !op->noted(fact))
    return missing(until_kernel_knows(mount(), op, file->id(), fact));
  return found(op, file, 0);
}

bool GrowingDirectory::looked() {
  looked_at_ = mount().clock().steady();
  for (const std::string& collection : collections_) mount().site().follow_list(collection);
  if (follows_.exchange(true)) return false;
  for (const std::string& collection : collections_) mount().listings().given(collection, shared_from_this());
  follow();
  return true;
}

void GrowingDirectory::read_if_old() {
  for (const std::string& collection : collections_)
    if (!mount().site().is_list_fresh(collection))
      mount().site().list(collection, mount().gate()->closing(), [](const Result<ListPtr>&) {});
}

void GrowingDirectory::follow() {
  mount().later(mount().options().refresh, [this, weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self) return;
    const auto idle = mount().clock().steady() - looked_at_.load();
    if (idle > std::max<std::chrono::nanoseconds>(kFollowed, 2 * mount().options().refresh)) {
      follows_ = false;
      return;
    }
    read_if_old();
    follow();
  });
}

void GrowingDirectory::listed_anew() {
  if (is_due_.exchange(true)) return;
  mount().soon([this, weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self) return;
    is_due_ = false;
    if (!follows_) return;
    for (const std::string& collection : collections_) mount().listings().given(collection, self);
    grow();
  });
}

void GrowingDirectory::grow() {
  auto self = std::static_pointer_cast<GrowingDirectory>(shared_from_this());
  for (const std::string& name : files_) {
    if (!children().living<GrowingFile>(name)) continue;
    auto op = std::make_shared<Operation>(Caller());
    op->note(kGoesOn);
    drive<LookupResult>(
        mount(), Counted::lookup, op, [self, name](const OperationPtr& by) { return self->growing(by, name); },
        [self, name] { return self->path_below(name); }, Reply<LookupResult>([self](const Result<LookupResult>&) {}));
  }
}

}  // namespace playfs::vfs
