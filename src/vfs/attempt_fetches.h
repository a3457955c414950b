// Everything an attempt can wait for, as fetches: thin adapters for the content module's callbacks and the executor.
//
// `mount` outlives every fetch: whoever starts one holds a gate ticket until the fetch has answered.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "content/revision_summary.h"
#include "content/site.h"
#include "vfs/async.h"
#include "vfs/mount.h"
#include "vfs/node.h"

namespace playfs::vfs {

using content::RevisionSummary;
using content::SummaryPtr;

/// A callback that drops the value; the next attempt finds what was fetched where it was stored.
template <class T>
Callback<T> only_status(Callback<void> done) {
  return [done = std::move(done)](Result<T> result) mutable {
    done(result ? Status() : Status(fail(std::move(result).error())));
  };
}

// Attempts at what the site may already have.
Attempt<RevisionTreePtr> revision_here(Mount& mount, const OperationPtr& op, const RevisionId& id);
/// Only what is here, without a request; nullptr if nothing is.
Attempt<RevisionTreePtr> known_revision(Mount& mount, const OperationPtr& op, const RevisionId& id);
Attempt<SummaryPtr> known_summary(Mount& mount, const OperationPtr& op, const RevisionId& id);
Attempt<content::Blob> blob_here(Mount& mount, const FileRef& file);
/// Reads bytes; refetches a blob that is damaged on disk.
Attempt<std::string> read_here(Mount& mount, const FileRef& file, std::uint64_t offset, std::size_t size);

/// The size of a published file as last reported to the kernel; part of the file's node. A manifest's size is only a
/// claim until the content has been fetched, and readers stop where the kernel believes the file ends. So content is
/// served or changed only if it has the reported size. Otherwise the answer is `stale` with the reason, and the kernel
/// asks for the size again, which is known by then.
class ToldSize {
 public:
  Attempt<std::uint64_t> tell(const OperationPtr& op, Mount& mount, const FileRef& file);
  /// Like tell(), without waiting. Returns kUnknownSize if the size is not known and none has been reported yet.
  std::uint64_t tell_at_once(Mount& mount, const FileRef& file);
  /// Call when the bytes are no longer the published ones, so the reported size does not apply.
  void forget() { told_ = kNothing; }
  Attempt<content::Blob> blob(const Node& node, Mount& mount, const FileRef& file);
  Attempt<std::string> read(const Node& node, Mount& mount, const FileRef& file, std::uint64_t offset,
                            std::size_t size);

 private:
  static constexpr std::uint64_t kNothing = UINT64_MAX;
  std::atomic<std::uint64_t> told_ = kNothing;
  std::atomic<std::uint64_t> unknown_ = 0;  ///< how often tell_at_once() did not know the size
};
/// Sets the size; an unknown one gets a timeout of 0.
void show_size(AttributesReply& reply, std::uint64_t size);
/// The head as last seen, whatever its age.
Attempt<content::Head> head_here(Mount& mount, const ProjectId& id);
/// Whether the service says that it has no such project.
Attempt<bool> is_gone(Mount& mount, const OperationPtr& op, const ProjectId& id);
/// Like head_here(), but first asks the service about a project that is not being followed, for as long as the service
/// is worth waiting for.
Attempt<content::Head> head_for_use(Mount& mount, const OperationPtr& op, const ProjectId& id);
/// Whether head_for_use() asked for the head in this operation.
bool asked_for_head(const OperationPtr& op, const ProjectId& id);
/// The revision that the project shows, by head_for_use(); empty: nothing is published.
Attempt<RevisionId> shown_id(Mount& mount, const OperationPtr& op, const ProjectId& id);
/// The same with its tree, or nullptr.
Attempt<RevisionTreePtr> shown_here(Mount& mount, const OperationPtr& op, const ProjectId& id);
/// Calls `came`, inside the mount's gate, with the revision that the project shows, once it is available; never if
/// there is none or it cannot be fetched. Sends no request for what is already here.
void bring_shown(Mount& mount, const ProjectId& project, std::function<void(const RevisionTreePtr&)> came);
// Records come from strangers and may have megabytes: what is kept of them is what `reduce` makes, and those of more
// than ordinary size are parsed on threads of their own.
using content::RecordPartPtr;
/// Of the record as the service has it now, requested once per operation. If a copy is known, the wait is short.
Attempt<RecordPartPtr> part_here(Mount& mount, const OperationPtr& op, const std::string& collection,
                                 const std::string& id, content::Reduce reduce);
/// Of the record as last seen; requested only if it is not here.
Attempt<RecordPartPtr> known_part(Mount& mount, const OperationPtr& op, const std::string& collection,
                                  const std::string& id, content::Reduce reduce);
/// Of several records, in the order of `ids`; those that the service does not have are omitted. None is parsed on the
/// calling thread.
Attempt<std::vector<RecordPartPtr>> parts_here(Mount& mount, const OperationPtr& op, const std::string& collection,
                                               const std::vector<std::string>& ids, content::Reduce reduce);
/// Of a record that is at hand.
void make_part(Mount& mount, content::RecordTextPtr text, content::Reduce reduce, const CancelToken& cancel,
               Callback<RecordPartPtr> done);
/// The text of a part as files show it.
ShownText shown_text_of(Mount& mount, const std::string& collection, const std::string& id, content::Reduce reduce,
                        const content::RecordPart& part);
using ListPtr = std::shared_ptr<const std::vector<content::Listed>>;
/// Requested once per operation; the last known list if the service is unreachable or slow.
Attempt<ListPtr> list_here(Mount& mount, const OperationPtr& op, const std::string& collection);
/// Like list_here(), but accepts a list requested within the last `refresh`.
Attempt<ListPtr> fresh_list(Mount& mount, const OperationPtr& op, const std::string& collection);
/// The last known list, of any age; fetched only if there is none.
Attempt<ListPtr> known_list(Mount& mount, const OperationPtr& op, const std::string& collection);

/// Fetches the missing ones among a project's revisions, all at once, and keeps their summaries in the operation. Notes
/// "gone/ID" for those that cannot be had.
Fetch fetch_revisions(Mount& mount, const OperationPtr& op, const ProjectId& project, std::vector<RevisionId> ids);
/// The summary of a revision, if one is in memory.
SummaryPtr summary_here(Mount& mount, const OperationPtr& op, const RevisionId& id);
/// Makes it, for the rest of the operation and for later ones.
SummaryPtr keep_summary(Mount& mount, const OperationPtr& op, const RevisionTree& tree);
/// Runs `ask` to get a newer version of `what`, which is already known. Stops waiting (but not asking) after
/// `patience`, or when the request fails. Notes `fact` either way.
using Ask = UniqueFunction<void(CancelToken, Callback<void>)>;
Fetch fetch_news(Mount& mount, const OperationPtr& op, std::string what, std::chrono::milliseconds patience,
                 std::string fact, Ask ask);
/// Completes without error and notes `fact` once the operation is older than `patience`. The request itself continues
/// for `longer`, for whoever waits for the result elsewhere by then.
Fetch fetch_for_a_while(Mount& mount, const OperationPtr& op, std::chrono::milliseconds patience,
                        std::chrono::milliseconds longer, std::string fact, Fetch fetch);
/// Local work that may block on the disk; runs on threads of its own, so nothing else waits with it.
Fetch on_disk(Mount& mount, UniqueFunction<Status()> work);
/// Reads or renders much of what strangers wrote, on one of the mount's threads for that. A caller that is interrupted
/// is answered at once: `work` looks at the token between its steps. It may go on with another fetch.
Fetch off_thread(Mount& mount, Executor& threads, UniqueFunction<void(const CancelToken&, Callback<void>)> work);
/// Text from `render`, made once per operation, off the calling thread if it is made of more than kRenderedAtOnce
/// bytes.
inline constexpr std::size_t kRenderedAtOnce = 64 << 10;
Attempt<std::string> rendered(Mount& mount, const OperationPtr& op, const std::string& name, std::size_t bytes,
                              UniqueFunction<std::string()> render);
/// Invalidating thousands of names on a busy machine takes less. A kernel that itself has to wait has no limit.
inline constexpr std::chrono::seconds kKernelPatience{10};
/// Notes `fact` once the kernel knows of all changes in the project so far. If that takes longer than `patience`, also
/// notes kUntold: the kernel is busy and still shows old names.
Fetch until_kernel_knows(Mount& mount, const OperationPtr& op, const ProjectId& project, std::string fact,
                         std::chrono::milliseconds patience = kKernelPatience);
inline constexpr const char* kUntold = "untold";
/// The same for one node.
Fetch until_kernel_knows(Mount& mount, const OperationPtr& op, NodeId node, std::string fact);
/// The same for all listings derived from a collection's list.
Fetch until_listings_are_dropped(Mount& mount, const OperationPtr& op, const std::string& collection, std::string fact);

}  // namespace playfs::vfs
