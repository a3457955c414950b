// A control file that takes requests: `new`, `reply`, `commit`, `state.json`.
//
// What is written through one opening is one request, however many write(2)s it takes. There is no open and no release
// here, so each lookup gives a node of its own: a node is an opening. The first write waits until a CloseWatcher
// watches the node, and the close makes the text complete. Where there is no watcher (no inotify left, the mount point
// hidden), a pause in the writing does. A JSON object is complete with its last brace, and that write waits for the
// outcome.
//
// A node shows the text that was current when it was looked up. While a request is under way that text is still to
// come: reading waits for it. Waiting in the lookup would be worse: the kernel holds the directory's lock meanwhile,
// and everything else in the directory would wait too. Therefore such a node has a size that it may not come to; the
// read that ends short corrects it. What was written stays in the kernel's pages of the node, and is never invalidated:
// the kernel would wait for the page that a write under way has locked, and with it all other notifications.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "vfs/close_watcher.h"
#include "vfs/node.h"
#include "vfs/request_text.h"

namespace playfs::vfs {

class RequestFile final : public Node {
 public:
  /// Shows `text`, or what `awaited` comes to, where that is given.
  RequestFile(Mount& mount, NodePtr parent, std::string name, std::string text, WallTime time, RequestTextPtr awaited,
              Request request);

  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  /// Truncation, as a shell's `>` asks for it, is accepted and is no request.
  Attempt<AttributesReply> set_attributes(const OperationPtr& op, const SetAttributes& change) override;
  Attempt<std::string> read(const OperationPtr& op, std::uint64_t offset, std::size_t size) override;
  Attempt<std::size_t> write(const OperationPtr& op, std::uint64_t offset, const std::string& data) override;
  /// Fails while what was written cannot be a request as it stands: nothing would be done with it. Where it was done,
  /// says what it came to.
  Attempt<void> sync(const OperationPtr& op) override;

  /// The text is complete: runs the request, once.
  void begin(const RequestTextPtr& text);
  /// Nothing is done with the text.
  void refuse(const RequestTextPtr& text, const Error& error);

 private:
  [[nodiscard]] NodeAttributes shown(std::uint64_t size) const;
  struct Own {
    RequestTextPtr text;  ///< nullptr: nothing was written through this opening
    bool truncated = false;
  };
  [[nodiscard]] Own own() const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] RequestTextPtr text_for(const OperationPtr& op, std::uint64_t offset);
  [[nodiscard]] Fetch arm(const RequestTextPtr& text);
  void begin_after_a_pause(const RequestTextPtr& text);
  void run(const RequestTextPtr& text);
  void finish(const RequestTextPtr& text, Result<RequestAnswer> result);
  [[nodiscard]] std::shared_ptr<RequestFile> self();

  const std::string text_;
  const WallTime time_;
  const RequestTextPtr awaited_;
  const Request request_;
  mutable Mutex mutex_;
  RequestTextPtr own_ PLAYFS_GUARDED_BY(mutex_);
  bool truncated_ PLAYFS_GUARDED_BY(mutex_) = false;
};

/// The texts of a mount that are being written or done. Thread-safe; its lock is a leaf.
class RequestsUnderWay {
 public:
  /// nullptr: there is none any more; what it saw closed until then is begun.
  void set_watcher(std::shared_ptr<CloseWatcher> watcher) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::shared_ptr<CloseWatcher> watcher() const PLAYFS_EXCLUDES(mutex_);

  void add(const std::string& path, const std::shared_ptr<RequestFile>& file, const RequestTextPtr& text)
      PLAYFS_EXCLUDES(mutex_);
  void remove(const RequestTextPtr& text) PLAYFS_EXCLUDES(mutex_);

  /// A number for a watch of the file, which the watcher's lookup is to find.
  CloseWatcher::Watch expect(const std::shared_ptr<RequestFile>& file) PLAYFS_EXCLUDES(mutex_);
  /// Whether it did. The lookup is not expected any more.
  bool was_found(CloseWatcher::Watch watch) PLAYFS_EXCLUDES(mutex_);
  /// The file that the watcher looks for, if it is the watcher's thread that asks.
  [[nodiscard]] std::shared_ptr<RequestFile> looked_for_by(pid_t thread) PLAYFS_EXCLUDES(mutex_);

  /// What a reader of `path` waits for: the last request whose text is complete, else one whose writer is another
  /// process; nullptr: nothing.
  [[nodiscard]] RequestTextPtr awaited(const std::string& path, pid_t reader) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool is_written_by(const std::string& path, pid_t process) const PLAYFS_EXCLUDES(mutex_);

  /// The mount ends: what is complete is waited for, not for long; of what is not, nothing is done.
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
  /// Begins those that were closed, before anybody waits for the others.
  std::vector<Item> settled(const std::string* path) PLAYFS_EXCLUDES(mutex_);

  mutable Mutex mutex_;
  Condition changed_;
  std::shared_ptr<CloseWatcher> watcher_ PLAYFS_GUARDED_BY(mutex_);
  std::vector<Item> items_ PLAYFS_GUARDED_BY(mutex_);  ///< in the order in which they were begun
  std::map<CloseWatcher::Watch, Expected> expected_ PLAYFS_GUARDED_BY(mutex_);
  std::uint64_t removals_ PLAYFS_GUARDED_BY(mutex_) = 0;
  CloseWatcher::Watch next_watch_ PLAYFS_GUARDED_BY(mutex_) = 1;
};

}  // namespace playfs::vfs
