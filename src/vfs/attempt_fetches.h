// What an attempt of any subject can wait for: news, the disk, other threads, the kernel. Thin adapters for the
// executor, the mount's threads and its notifications; what the service has is fetched by vfs/published.
//
// `mount` outlives every fetch: whoever starts one holds a gate ticket until the fetch has answered.
#pragma once

#include <chrono>
#include <string>

#include "vfs/async.h"
#include "vfs/mount.h"

namespace playfs::vfs {

/// Runs `ask` to get a newer version of `what`, which is already known. Stops waiting (but not asking) after
/// `patience`, or when the request fails. Notes `fact` either way.
using Ask = UniqueFunction<void(CancelToken, Callback<void>)>;
Fetch fetch_news(Mount& mount, const OperationPtr& op, std::string what, std::chrono::milliseconds patience,
                 std::string fact, Ask ask);
/// Completes without error and notes `fact` once the operation is older than `patience`. The request itself continues
/// for `longer`, for whoever waits for the result elsewhere by then.
Fetch fetch_for_a_while(Mount& mount, const OperationPtr& op, std::chrono::milliseconds patience,
                        std::chrono::milliseconds longer, std::string fact, Fetch fetch);
/// Waits until this mount's own requests that create records of the collection (those that belong to `owner`, if given)
/// have an answer, so that a program finds what it wrote to `new` or `reply` just before. Waits until two seconds after
/// their close at most; then the operation shows what is known.
Attempt<void> own_requests_answered(Mount& mount, const OperationPtr& op, const std::string& collection,
                                    const std::string* owner);
/// Local work that may block on the disk; runs on threads of its own, so nothing else waits with it.
Fetch on_disk(Mount& mount, UniqueFunction<Status()> work);
/// Reads or renders large amounts of strangers' data on `threads`, the mount's executor for that. An interrupted caller
/// is answered at once; `work` checks the token between its steps, and may continue with another fetch.
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
