// The bytes of published files, and the sizes that the kernel is told.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "content/site.h"
#include "vfs/attempt.h"
#include "vfs/node.h"

namespace playfs::vfs {

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

}  // namespace playfs::vfs
