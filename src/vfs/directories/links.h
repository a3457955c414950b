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
  /// Several records may carry a name, which one of them owns (`content/names.h`): an incomplete list yields no links.
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
  Attempt<LookupResult> make_node(const OperationPtr& op, const std::string& name, mode_t mode, dev_t device) override;
  [[nodiscard]] std::string made_of() const override { return view_.collection; }

 private:
  /// The name of the record's link; empty: it has none.
  [[nodiscard]] std::string name_of(const content::Listed& record) const;

  const LinkView view_;
  DerivedNames derived_;
};

}  // namespace playfs::vfs
