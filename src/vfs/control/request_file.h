// A control file that accepts requests: `new`, `reply`, `commit`, `state.json`, and records that anybody may change.
//
// Everything written through one open file is one request, however many write(2)s it takes. There is no open or release
// here, so each lookup creates a node: a node stands for one open file, and has what belongs to it: its text, how it
// was reached, and what it has changed. The first write waits until a CloseWatcher watches the node, and the close then
// completes the text. Without a watcher (no inotify instance left, mount point hidden) a pause in writing completes it.
// A JSON object is complete with its last brace, and that write waits for the outcome.
//
// A node shows the text that was current at its lookup. During a request that text does not exist yet, and reading
// waits for it. Waiting in the lookup would be worse: the kernel holds the directory's lock meanwhile, and everything
// else in the directory would wait, too. So such a node shows a size that may be too large, which the first short read
// corrects. Written bytes stay in the kernel's pages of the node and are never invalidated: the kernel would wait for
// the page that a running write has locked, and hold up all other invalidations.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "vfs/control/request_text.h"
#include "vfs/node.h"

namespace playfs::vfs {

class RequestFile final : public Node {
 public:
  /// Shows `text`, or the outcome of `awaited` if given.
  RequestFile(Mount& mount, NodePtr parent, std::string name, NodeId id, ShownText text, WallTime time,
              RequestTextPtr awaited, Request request);

  /// Remembers through which name the path of the operation led here, if through one.
  void set_reached_by(const Operation& op) PLAYFS_EXCLUDES(mutex_);
  /// Whether its requests create records of that collection, belonging to `owner` if given.
  [[nodiscard]] bool creates(const std::string& collection, const std::string* owner) const {
    return request_.creates == collection && (!owner || request_.owner == *owner);
  }
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  /// Truncation, as by a shell's `>`, is accepted and makes no request.
  Attempt<AttributesReply> set_attributes(const OperationPtr& op, const SetAttributes& change) override;
  Attempt<std::string> read(const OperationPtr& op, std::uint64_t offset, std::size_t size) override;
  Attempt<std::size_t> write(const OperationPtr& op, std::uint64_t offset, const std::string& data) override;
  /// Fails if what was written so far cannot be a request, since it would be discarded. After the request has run,
  /// returns its outcome.
  Attempt<void> sync(const OperationPtr& op) override;

  /// The text is complete: runs the request, once.
  void begin(const RequestTextPtr& text);
  /// Fails the request without running it. Its writer is told, by the write that failed, or the mount ends.
  void refuse(const RequestTextPtr& text, const Error& error);

 private:
  [[nodiscard]] NodeAttributes shown(std::uint64_t size);
  /// Whether a chmod(2) to that mode changes nothing.
  [[nodiscard]] bool has_mode(mode_t mode) const;
  struct Own {
    RequestTextPtr text;  ///< nullptr: nothing was written through this open file
    bool truncated = false;
  };
  [[nodiscard]] Own own() const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] RequestTextPtr text_for(const OperationPtr& op, std::uint64_t offset, const std::string& data);
  [[nodiscard]] Fetch arm(const RequestTextPtr& text);
  /// What was written is on disk before the write is answered: close(2) waits for nothing.
  [[nodiscard]] Fetch keep_draft(const OperationPtr& op, const RequestTextPtr& text);
  void begin_after_a_pause(const RequestTextPtr& text);
  void run(const RequestTextPtr& text);
  /// Saves the text first if it was accepted and will not be sent.
  void finish(const RequestTextPtr& text, Result<RequestAnswer> result);
  /// Records an error, then ends it.
  void conclude(const RequestTextPtr& text, Result<RequestAnswer> result);
  /// Shows the result and lets go of the text.
  void end(const RequestTextPtr& text, Result<RequestAnswer> result);
  [[nodiscard]] std::shared_ptr<RequestFile> self();

  const ShownText text_;
  const WallTime time_;
  const RequestTextPtr awaited_;
  const Request request_;
  mutable Mutex mutex_;
  RequestTextPtr own_ PLAYFS_GUARDED_BY(mutex_);
  bool truncated_ PLAYFS_GUARDED_BY(mutex_) = false;
  NamedRecordPtr reached_by_ PLAYFS_GUARDED_BY(mutex_);
  /// The size that the kernel has. It must not be told a smaller one during a write: it would wait for the page that
  /// the write has locked, while the first write waits for the watcher's lookup.
  std::atomic<std::uint64_t> kernel_size_ = 0;
};

}  // namespace playfs::vfs
