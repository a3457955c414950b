// `projects/` and its `by-name/`: which projects exist.
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>

#include "base/mutex.h"
#include "vfs/directories/virtual_directory.h"
#include "vfs/published/list_fetches.h"

namespace playfs::vfs {

/// A list of the service as directory entries, derived once per version of the list.
class DerivedNames {
 public:
  using Make = std::function<std::vector<ListedName>(const std::vector<content::Listed>&)>;
  ListedNames of(const ListPtr& list, const Make& make) PLAYFS_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  ListPtr from_ PLAYFS_GUARDED_BY(mutex_);
  ListedNames names_ PLAYFS_GUARDED_BY(mutex_);
};

/// Whether a list contains an id, without a linear search each time.
class ListedIds {
 public:
  bool contain(const ListPtr& list, std::string_view id) PLAYFS_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  ListPtr of_ PLAYFS_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> order_ PLAYFS_GUARDED_BY(mutex_);  ///< indexes into the list, sorted by id
};

class ProjectsDirectory final : public VirtualDirectory {
 public:
  using VirtualDirectory::VirtualDirectory;

 protected:
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
  [[nodiscard]] std::string made_of() const override { return "projects"; }

 private:
  Async<RequestAnswer> create(OperationPtr op, std::string text);
  DerivedNames derived_;
  ListedIds ids_;
};

/// Links to the project that has each name.
class ByNameDirectory final : public VirtualDirectory {
 public:
  using VirtualDirectory::VirtualDirectory;

 protected:
  [[nodiscard]] mode_t type_of(const std::string&) const override { return S_IFLNK; }
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
  [[nodiscard]] std::string made_of() const override { return "projects"; }

 private:
  DerivedNames derived_;
};

}  // namespace playfs::vfs
