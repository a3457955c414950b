// Directories of links to the records of a list: `threads/by-title/`, `threads/by-kind/KIND/`, `spaces/by-name/`.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>

#include "vfs/directories/projects.h"
#include "vfs/directories/virtual_directory.h"

namespace playfs::vfs {

struct LinkView {
  std::string collection;
  std::function<std::string(const content::Listed&)> name;  ///< of the link; empty: there is none
  std::string before, after;                                ///< the target, around the id
  /// Several records may carry a name, which is one's (`content/names.h`): there are no links unless all are listed.
  bool is_shared = true;
};

class LinksDirectory final : public VirtualDirectory {
 public:
  LinksDirectory(Mount& mount, NodePtr parent, std::string name, LinkView view)
      : VirtualDirectory(mount, std::move(parent), std::move(name)), view_(std::move(view)) {}

 protected:
  [[nodiscard]] mode_t type_of(const std::string&) const override { return S_IFLNK; }
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
  [[nodiscard]] std::string made_of() const override { return view_.collection; }

 private:
  /// Empty: it has no link.
  [[nodiscard]] std::string name_of(const content::Listed& record) const;

  const LinkView view_;
  DerivedNames derived_;
};

}  // namespace playfs::vfs
