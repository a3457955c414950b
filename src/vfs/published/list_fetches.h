// Attempts at the lists of the service's collections.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "content/site.h"
#include "vfs/attempt.h"

namespace playfs::vfs {

class Mount;
using ListPtr = std::shared_ptr<const std::vector<content::Listed>>;

/// Requested once per operation; the last known list if the service is unreachable or slow.
Attempt<ListPtr> list_here(Mount& mount, const OperationPtr& op, const std::string& collection);
/// Like list_here(), but accepts a list requested within the last `refresh`.
Attempt<ListPtr> fresh_list(Mount& mount, const OperationPtr& op, const std::string& collection);
/// The records of list_here() that belong to one owner, such as a thread's messages. Does not read those of others.
Attempt<ListPtr> list_of_here(Mount& mount, const OperationPtr& op, const std::string& collection,
                              const std::string& owner);
/// The same without records that this mount created and no page has shown yet.
Attempt<ListPtr> list_of_here_as_read(Mount& mount, const OperationPtr& op, const std::string& collection,
                                      const std::string& owner);
/// The last known list, of any age; fetched only if there is none.
Attempt<ListPtr> known_list(Mount& mount, const OperationPtr& op, const std::string& collection);

}  // namespace playfs::vfs
