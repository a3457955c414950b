// `agents/`, `mail/`, `spaces/` and `records/`: the service's other collections.
#pragma once

#include <sys/stat.h>

#include <string>

#include "vfs/control/requests.h"
#include "vfs/directories/projects.h"
#include "vfs/directories/virtual_directory.h"

namespace playfs::vfs {

/// A collection whose records are files NAME.json, with `new` if the mount lets users add records.
struct CollectionView {
  std::string collection;
  bool by_name = false;        ///< has by-name/
  bool by_handle = false;      ///< name files by handle if the record has one
  const Form* form = nullptr;  ///< what `new` accepts; nullptr: there is no `new`
  /// Why nobody can change the files by writing to them; nullptr: they can be changed.
  const char* fixed =
      "records/ shows records as they are: change them in agents/, threads/, mail/, spaces/ and projects/";
};

/// The collections that the mount can write to.
CollectionView agents_view();
CollectionView mail_view();
CollectionView spaces_view();

class CollectionDirectory final : public VirtualDirectory {
 public:
  CollectionDirectory(Mount& mount, NodePtr parent, std::string name, CollectionView view);

 protected:
  [[nodiscard]] mode_t type_of(const std::string&) const override { return S_IFREG; }
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
  [[nodiscard]] std::string made_of() const override { return view_.collection; }
  [[nodiscard]] bool has_records() const override { return !view_.fixed; }

  [[nodiscard]] Error refusal() const override;

 private:
  /// The id for a file name without ".json".
  Attempt<std::string> id_of(const OperationPtr& op, const std::string& stem);
  /// The same in this list; empty: it has no such agent.
  [[nodiscard]] std::string id_in(const std::vector<content::Listed>& list, const std::string& stem) const;
  /// Whether it is known who has a name: an older record, which is not listed, may.
  [[nodiscard]] bool is_sure_of_names() const;
  Async<RequestAnswer> create(OperationPtr op, std::string text);

  const CollectionView view_;
  DerivedNames derived_;
};

/// `records/`: every collection by name, including those that playfs does not know.
class RecordsDirectory final : public VirtualDirectory {
 public:
  using VirtualDirectory::VirtualDirectory;

 protected:
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
};

}  // namespace playfs::vfs
