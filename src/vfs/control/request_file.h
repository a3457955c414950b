// A control file that accepts requests: `new`, `reply`, `commit`, `state.json`, and records that anybody may change.
//
// Everything written through one open file is one request, however many write(2)s it takes. There is no open or release
// here, so each lookup creates a node: a node stands for one open file. The first write waits until a CloseWatcher
// watches the node, and the close then completes the text. Without a watcher (no inotify instance left, mount point
// hidden) a pause in writing completes it. A JSON object is complete with its last brace, and that write waits for the
// outcome.
//
// A node shows the text that was current at its lookup. During a request that text does not exist yet, and reading
// waits for it. Waiting in the lookup would be worse: the kernel holds the directory's lock meanwhile, and everything
// else in the directory would wait, too. So such a node shows a size that may be too large, which the first short read
// corrects. Written bytes stay in the kernel's pages of the node and are never invalidated: the kernel would wait for
// the page that a running write has locked, and hold up all other invalidations.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "vfs/control/close_watcher.h"
#include "vfs/control/request_text.h"
#include "vfs/node.h"

namespace playfs::vfs {

/// The operation that runs a request holds its text (a RequestTextPtr) by this name.
inline constexpr const char* kRequestText = "request text";

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
  /// Whether it shows this text and nobody has changed the file.
  [[nodiscard]] bool shows(const ShownText& text) const;
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
  /// Call before the first write to a record's file: from then on its text differs from the record, so the name goes to
  /// a new node.
  void give_name_away();
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

/// The texts being written or processed in a mount. Thread-safe; its lock is a leaf.
class RequestsUnderWay {
 public:
  /// nullptr removes the watcher; requests that it saw closed until then are started.
  void set_watcher(std::shared_ptr<CloseWatcher> watcher) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::shared_ptr<CloseWatcher> watcher() const PLAYFS_EXCLUDES(mutex_);

  void add(const std::string& path, const std::shared_ptr<RequestFile>& file, const RequestTextPtr& text)
      PLAYFS_EXCLUDES(mutex_);
  void remove(const RequestTextPtr& text) PLAYFS_EXCLUDES(mutex_);
  /// Whether this call started it. Assigns it an order number; these increase with time, also from mount to mount.
  [[nodiscard]] bool start(const RequestTextPtr& text, WallTime now) PLAYFS_EXCLUDES(mutex_);
  /// An order number for a request that has no text.
  [[nodiscard]] std::int64_t next_order(WallTime now) PLAYFS_EXCLUDES(mutex_);
  /// The running request of that file that was completed just before `text`; nullptr: it is the turn of `text`.
  [[nodiscard]] RequestTextPtr running_before(const std::string& path, const RequestTextPtr& text)
      PLAYFS_EXCLUDES(mutex_);

  /// Allocates an id for a watch of `file`; the watcher's lookup is expected to find that node.
  CloseWatcher::Watch expect(const std::shared_ptr<RequestFile>& file) PLAYFS_EXCLUDES(mutex_);
  /// Whether the lookup found it. Ends the expectation.
  bool was_found(CloseWatcher::Watch watch) PLAYFS_EXCLUDES(mutex_);
  /// The file to return if the lookup comes from the watcher's own thread, else nullptr.
  [[nodiscard]] std::shared_ptr<RequestFile> looked_for_by(pid_t thread) PLAYFS_EXCLUDES(mutex_);

  /// Starts those of `path` whose file was closed.
  void settle(const std::string& path) PLAYFS_EXCLUDES(mutex_) { settled(&path); }
  /// What a reader of `path` waits for: the last request whose text is complete, else one still being written by
  /// another process or without a watch; nullptr: nothing.
  [[nodiscard]] RequestTextPtr awaited(const std::string& path, pid_t reader) PLAYFS_EXCLUDES(mutex_);
  /// The last request that is complete, has no answer yet, and creates such a record (RequestFile::creates).
  [[nodiscard]] RequestTextPtr creating(const std::string& collection, const std::string* owner)
      PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool is_written_by(const std::string& path, pid_t process) const PLAYFS_EXCLUDES(mutex_);

  /// Ends the mount's requests: waits briefly for complete ones, discards incomplete ones.
  void end() PLAYFS_EXCLUDES(mutex_);

 private:
  struct Item {
    std::string path;
    std::shared_ptr<RequestFile> file;
    RequestTextPtr text;
  };
  struct Expected {
    std::weak_ptr<RequestFile> file;
    bool found = false;
  };
  /// All requests, or those of `path`. First starts those whose file was closed, so that nobody waits for them in vain.
  std::vector<Item> settled(const std::string* path) PLAYFS_EXCLUDES(mutex_);
  std::int64_t next(WallTime now) PLAYFS_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Condition changed_;
  std::shared_ptr<CloseWatcher> watcher_ PLAYFS_GUARDED_BY(mutex_);
  std::vector<Item> items_ PLAYFS_GUARDED_BY(mutex_);  ///< in the order of their first writes
  std::map<CloseWatcher::Watch, Expected> expected_ PLAYFS_GUARDED_BY(mutex_);
  std::int64_t last_order_ PLAYFS_GUARDED_BY(mutex_) = 0;
  std::uint64_t removals_ PLAYFS_GUARDED_BY(mutex_) = 0;
  CloseWatcher::Watch next_watch_ PLAYFS_GUARDED_BY(mutex_) = 1;
};

}  // namespace playfs::vfs
