#include "vfs/directories/root.h"

#include <sys/stat.h>

#include "vfs/directories/inbox.h"
#include "vfs/directories/maildir.h"
#include "vfs/directories/own_files.h"
#include "vfs/directories/projects.h"
#include "vfs/directories/records.h"
#include "vfs/directories/threads.h"
#include "vfs/directories/tree_root.h"
#include "vfs/guide_text.h"
#include "vfs/mount.h"

namespace playfs::vfs {

NodePtr make_root(Mount& mount) {
  const FileSystemOptions& options = mount.options();
  if (options.project)
    return std::make_shared<TreeRoot>(mount, nullptr, std::string(), *options.project, options.revision);
  return std::make_shared<RootDirectory>(mount);
}

Attempt<ListedNames> RootDirectory::names(const OperationPtr&) {
  return fixed_names({{"README.md", S_IFREG},
                      {kOwnDirectory, S_IFDIR},
                      {"projects", S_IFDIR},
                      {"threads", S_IFDIR},
                      {"agents", S_IFDIR},
                      {"mail", S_IFDIR},
                      {"maildir", S_IFDIR},
                      {"spaces", S_IFDIR},
                      {"inbox", S_IFDIR},
                      {"records", S_IFDIR}});
}

Attempt<LookupResult> RootDirectory::child(const OperationPtr& op, const std::string& name) {
  if (name == "README.md") return snapshot(op, name, std::string(kGuide), mount().started(), kEndless);
  if (name == kOwnDirectory) return directory<OwnDirectory>(op, name);
  if (name == "projects") return directory<ProjectsDirectory>(op, name);
  if (name == "threads") return directory<ThreadsDirectory>(op, name);
  if (name == "agents") return directory<CollectionDirectory>(op, name, agents_view());
  if (name == "mail") return directory<CollectionDirectory>(op, name, mail_view());
  if (name == "maildir") return directory<MaildirsDirectory>(op, name);
  if (name == "spaces") return directory<CollectionDirectory>(op, name, spaces_view());
  if (name == "inbox") return directory<InboxDirectory>(op, name);
  if (name == "records") return directory<RecordsDirectory>(op, name);
  return nothing(kEndless);
}

}  // namespace playfs::vfs
