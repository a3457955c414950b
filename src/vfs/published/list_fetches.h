// The lists of the service's collections.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "content/site.h"
#include "vfs/attempt.h"

namespace playfs::vfs {

class Mount;
using ListPtr = std::shared_ptr<const std::vector<content::Listed>>;

/// Which records of a list belong to what: messages to their thread. Looks through a list once, whatever is asked of it
/// afterwards. Thread-safe.
class ListedByOwner {
 public:
  /// Newest first.
  [[nodiscard]] std::vector<content::Listed> of(const ListPtr& list, std::string_view owner) PLAYFS_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  ListPtr of_ PLAYFS_GUARDED_BY(mutex_);
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> places_ PLAYFS_GUARDED_BY(mutex_);  ///< into `of_`
};

/// Requested once per operation; the last known list if the service is unreachable or slow.
Attempt<ListPtr> list_here(Mount& mount, const OperationPtr& op, const std::string& collection);
/// Like list_here(), but accepts a list requested within the last `refresh`.
Attempt<ListPtr> fresh_list(Mount& mount, const OperationPtr& op, const std::string& collection);
/// The last known list, of any age; fetched only if there is none.
Attempt<ListPtr> known_list(Mount& mount, const OperationPtr& op, const std::string& collection);

}  // namespace playfs::vfs
