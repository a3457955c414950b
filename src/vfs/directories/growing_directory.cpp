#include "vfs/directories/growing_directory.h"

#include <algorithm>

#include "vfs/attempt_driver.h"
#include "vfs/attempt_fetches.h"

namespace playfs::vfs {

GrowingDirectory::GrowingDirectory(Mount& mount, NodePtr parent, std::string name, std::vector<std::string> files,
                                   std::vector<std::string> collections, std::optional<std::string> owner)
    : VirtualDirectory(mount, std::move(parent), std::move(name)),
      files_(std::move(files)),
      lists_(mount, std::move(collections), std::move(owner)) {}

bool GrowingDirectory::grows(const std::string& name) const {
  return std::find(files_.begin(), files_.end(), name) != files_.end();
}

Attempt<LookupResult> GrowingDirectory::growing_file(const OperationPtr& op, const std::string& name,
                                                     const std::string& text, GrowingFile::Shown made_of) {
  auto look = [weak = weak_from_this()] {
    auto self = std::static_pointer_cast<GrowingDirectory>(weak.lock());
    if (!self || !self->looked()) return;
    // A reader that was stopped until the lists were no longer followed has missed changes, and still has its file
    // open.
    self->lists_.read_if_old();
    self->listed_anew();
  };
  auto file = children().get<GrowingFile>(
      name, [&](GrowingFile& growing) { return growing.grow_to(text, made_of.reading, made_of.basis); },
      [&] {
        return std::make_shared<GrowingFile>(mount(), shared_from_this(), name, text, made_of.reading, made_of.basis,
                                             look);
      });
  return grown_file(op, file);
}

std::shared_ptr<GrowingFile> GrowingDirectory::file_of(const std::string& name) {
  return children().living<GrowingFile>(name);
}

Attempt<LookupResult> GrowingDirectory::grown_file(const OperationPtr& op, const std::shared_ptr<GrowingFile>& file) {
  // A program that has just written must find what it wrote.
  const std::string fact = "shown/" + file->name();
  if (!op->noted(kGoesOn) && !file->shows_its_size() && !op->noted(fact))
    return missing(until_kernel_knows(mount(), op, file->id(), fact));
  return found(op, file, 0);
}

void GrowingDirectory::listed_anew() {
  lists_.listed_anew(shared_from_this(), [this](bool is_followed) {
    if (is_followed) grow();
  });
}

void GrowingDirectory::grow() {
  auto self = std::static_pointer_cast<GrowingDirectory>(shared_from_this());
  for (const std::string& name : files_) {
    if (!file_of(name)) continue;
    auto op = std::make_shared<Operation>(Caller());
    op->note(kGoesOn);
    mount().metrics().count_grown();
    drive<LookupResult>(
        mount(), Counted::lookup, op, [self, name](const OperationPtr& by) { return self->growing(by, name); },
        [self, name] { return self->path_below(name); }, Reply<LookupResult>([self](const Result<LookupResult>&) {}));
  }
}

}  // namespace playfs::vfs
