#include "vfs/published/file_content.h"

#include "vfs/attempt_driver.h"
#include "vfs/mount.h"

namespace playfs::vfs {
namespace {

/// Missing content of a published file makes the file unreadable, not absent.
Error as_unreadable(Error error, const std::string& path) {
  if (error.code == ErrorCode::not_found) error.code = ErrorCode::corrupt;
  return error.while_doing("read " + path);
}

Fetch fetch_blob(Mount& mount, const FileRef& file) {
  return [&mount, file](CancelToken cancel, Callback<void> done) {
    mount.site().blob(file, std::move(cancel),
                      [path = file.path, done = std::move(done)](Result<content::Blob> blob) mutable {
                        done(blob ? Status() : Status(fail(as_unreadable(std::move(blob).error(), path))));
                      });
  };
}

Attempt<std::string> read_of(Mount& mount, const content::Blob& blob, const FileRef& file, std::uint64_t offset,
                             std::size_t size) {
  auto bytes = blob.read(offset, size);
  if (!bytes && bytes.error().code == ErrorCode::corrupt) return missing(fetch_blob(mount, file));
  return bytes;
}

/// The value of `unknown_` when an operation began to wait for a size.
struct UnknownBefore {
  std::uint64_t times = 0;
};

}  // namespace

Attempt<content::Blob> blob_here(Mount& mount, const FileRef& file) {
  if (auto blob = mount.site().try_blob(file)) return std::move(*blob);
  return missing(fetch_blob(mount, file));
}

Attempt<std::string> read_here(Mount& mount, const FileRef& file, std::uint64_t offset, std::size_t size) {
  PLAYFS_ATTEMPT(content::Blob blob, blob_here(mount, file));
  return read_of(mount, blob, file, offset, size);
}

Attempt<std::uint64_t> ToldSize::tell(const OperationPtr& op, Mount& mount, const FileRef& file) {
  auto known = mount.site().size_of(file);
  if (!known) {
    if (!op->outcome<UnknownBefore>()) op->set_outcome(UnknownBefore{unknown_});
    PLAYFS_ATTEMPT(content::Blob blob, blob_here(mount, file));
    known = blob.size();
  }
  told_ = *known;
  // If the kernel got another reply about this file while this request waited, it considers this one's attributes
  // outdated and is left without a size. `stale` makes it ask again, invisibly for the program. If this may already be
  // that retry, answer nevertheless: stat(2) shows this reply itself, and the first read finds the end.
  if (auto before = op->outcome<UnknownBefore>(); before && before->times != unknown_ && !op->may_be_second) {
    op->note(kRecorded);
    mount.sent_back().note(op->caller.pid);
    return fail(ErrorCode::stale, "superseded by a newer response: try again");
  }
  return *known;
}

std::uint64_t ToldSize::tell_at_once(Mount& mount, const FileRef& file) {
  if (auto known = mount.site().size_of(file)) {
    told_ = *known;
    return *known;
  }
  ++unknown_;  // before reading told_; tell() uses the opposite order, so one of the two sees the other
  const std::uint64_t told = told_;
  return told == kNothing ? kUnknownSize : told;
}

Attempt<content::Blob> ToldSize::blob(const Node& node, Mount& mount, const FileRef& file) {
  PLAYFS_ATTEMPT(content::Blob blob, blob_here(mount, file));
  const std::uint64_t told = told_;
  if (told == kNothing || told == blob.size()) return blob;
  mount.notifications().node_changed(node.id(), -1);
  return fail(ErrorCode::stale,
              "its manifest says " + std::to_string(told) + " bytes, but it has " + std::to_string(blob.size()),
              "open it again: its real size is known now");
}

Attempt<std::string> ToldSize::read(const Node& node, Mount& mount, const FileRef& file, std::uint64_t offset,
                                    std::size_t size) {
  PLAYFS_ATTEMPT(content::Blob content, blob(node, mount, file));
  return read_of(mount, content, file, offset, size);
}

void show_size(AttributesReply& reply, std::uint64_t size) {
  const bool is_known = size != kUnknownSize;
  reply.attributes.size = size;
  reply.attributes.blocks = is_known ? (size + 511) / 512 : 0;
  if (!is_known) reply.timeout = 0;
}

}  // namespace playfs::vfs
