// What an attempt may want, as fetches: thin adapters from the content room's callbacks, and the executor.
//
// The `mount` outlives every fetch: whoever starts one holds a ticket of its gate until the fetch has answered.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "content/site.h"
#include "vfs/attempt.h"
#include "vfs/mount.h"
#include "vfs/node.h"

namespace playfs::vfs {

/// A callback that ignores the value: what was fetched is found again where it was put.
template <class T>
Callback<T> only_status(Callback<void> done) {
  return [done = std::move(done)](Result<T> result) mutable {
    done(result ? Status() : Status(fail(std::move(result).error())));
  };
}

// Attempts at what the site may have here.
Attempt<RevisionTreePtr> revision_here(Mount& mount, const RevisionId& id);
Attempt<content::Blob> blob_here(Mount& mount, const FileRef& file);
/// The bytes; one that the disk damaged is fetched again.
Attempt<std::string> read_here(Mount& mount, const FileRef& file, std::uint64_t offset, std::size_t size);

/// The size of a published file as the kernel was told it last: part of the file's node. It may be a claim, which only
/// the content proves, and readers stop where they were told that the file ends. So content is given out, or changed,
/// only where it is as long as that; otherwise the answer is `stale` with the reason, and the kernel asks for the size
/// anew, which is known by then.
class ToldSize {
 public:
  Attempt<std::uint64_t> tell(const OperationPtr& op, Mount& mount, const FileRef& file);
  /// kUnknownSize where that has to be waited for, and the kernel was told nothing yet.
  std::uint64_t tell_at_once(Mount& mount, const FileRef& file);
  /// The kernel goes by another size from now on: of bytes that are no longer the published ones.
  void forget() { told_ = kNothing; }
  Attempt<content::Blob> blob(const Node& node, Mount& mount, const FileRef& file);
  Attempt<std::string> read(const Node& node, Mount& mount, const FileRef& file, std::uint64_t offset,
                            std::size_t size);

 private:
  static constexpr std::uint64_t kNothing = UINT64_MAX;
  std::atomic<std::uint64_t> told_ = kNothing;
  std::atomic<std::uint64_t> unknown_ = 0;  ///< how often that was the answer
};
/// Shows this size; one that is unknown for no time.
void show_size(AttributesReply& reply, std::uint64_t size);
/// As last seen, however long ago.
Attempt<content::Head> head_here(Mount& mount, const ProjectId& id);
/// Whether the service says that it has no such project.
Attempt<bool> is_gone(Mount& mount, const OperationPtr& op, const ProjectId& id);
/// The same, but what is followed by nobody is asked for first, for as long as the service is worth waiting for.
Attempt<content::Head> head_for_use(Mount& mount, const OperationPtr& op, const ProjectId& id);
/// Whether head_for_use() asked for the head in this operation.
bool asked_for_head(const OperationPtr& op, const ProjectId& id);
/// The revision that the project shows, by its head for use; nullptr: nothing is published.
Attempt<RevisionTreePtr> shown_here(Mount& mount, const OperationPtr& op, const ProjectId& id);
/// For who follows the project: `came` is called with the revision that it shows, in the mount's gate, once that is
/// here; never where there is none, or it cannot be had. What is here is asked for by nobody.
void bring_shown(Mount& mount, const ProjectId& project, std::function<void(const RevisionTreePtr&)> came);
/// As the service has it now, asked for once an operation; one that is known is not waited for long.
Attempt<Record> record_here(Mount& mount, const OperationPtr& op, const std::string& collection, const std::string& id);
/// Several at once, in the order of `ids`; those that the service does not have are left out. Of each only what
/// `reduce` makes of it is kept: one may have megabytes.
Attempt<std::vector<Record>> records_here(Mount& mount, const OperationPtr& op, const std::string& collection,
                                          const std::vector<std::string>& ids, Record (*reduce)(const Record&));
using ListPtr = std::shared_ptr<const std::vector<content::Listed>>;
/// Asked for once an operation; where the service is away, or does not answer for a while, as last seen.
Attempt<ListPtr> list_here(Mount& mount, const OperationPtr& op, const std::string& collection);
/// As list_here(), but one that was asked for within `refresh` will do.
Attempt<ListPtr> fresh_list(Mount& mount, const OperationPtr& op, const std::string& collection);
/// As last seen; fetched only where it never was.
Attempt<ListPtr> known_list(Mount& mount, const OperationPtr& op, const std::string& collection);

/// Brings what of a project's revisions is not here, all at once. Those that cannot be had are noted as "gone/ID".
Fetch fetch_revisions(Mount& mount, const OperationPtr& op, const ProjectId& project, std::vector<RevisionId> ids);
/// Asks by `ask` for news of `what`, which is known already, and gives up waiting (not asking) after `patience`, or
/// when that fails. Notes `fact` either way.
using Ask = UniqueFunction<void(CancelToken, Callback<void>)>;
Fetch fetch_news(Mount& mount, const OperationPtr& op, std::string what, std::chrono::milliseconds patience,
                 std::string fact, Ask ask);
/// Ends without an error, and notes `fact`, where the operation is older than `patience`: what is asked for goes on for
/// `longer`, for whoever waits for it elsewhere by then.
Fetch fetch_for_a_while(Mount& mount, const OperationPtr& op, std::chrono::milliseconds patience,
                        std::chrono::milliseconds longer, std::string fact, Fetch fetch);
/// Local work that may have to wait for the disk: nothing else waits with it.
Fetch on_disk(Mount& mount, UniqueFunction<Status()> work);
/// Local work that may read much, on one of the mount's threads for that.
Fetch on_threads_of(Executor& threads, UniqueFunction<Status()> work);
/// Telling the kernel of thousands of names on a busy machine takes less; what it has to wait for takes as long as it
/// takes.
inline constexpr std::chrono::seconds kKernelPatience{10};
/// Notes `fact` when the kernel has been told of all that changed so far in the project. Where that takes too long it
/// notes kUntold as well: the kernel is busy, and shows names as they were.
Fetch until_kernel_knows(Mount& mount, const OperationPtr& op, const ProjectId& project, std::string fact,
                         std::chrono::milliseconds patience = kKernelPatience);
inline constexpr const char* kUntold = "untold";
/// The same of one node.
Fetch until_kernel_knows(Mount& mount, const OperationPtr& op, NodeId node, std::string fact);
/// The same of all listings that are made of a collection's list.
Fetch until_listings_are_dropped(Mount& mount, const OperationPtr& op, const std::string& collection, std::string fact);

}  // namespace playfs::vfs
