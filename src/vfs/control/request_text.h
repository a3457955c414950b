// The text of one request through a control file, from its first byte to its outcome.
//
// Collects what write(2) brings as a file would: later bytes append or overwrite. Complete when the file is closed or,
// for a JSON object, with its closing brace. Readers wait for the outcome. Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "vfs/async.h"
#include "vfs/control/close_watcher.h"
#include "vfs/shown_text.h"

namespace playfs::vfs {

class Draft;

/// The outcome of a request, as text.
struct RequestAnswer {
  ShownText text;
  /// Whether the file keeps showing this until the next request. Otherwise it shows the current state, as the publisher
  /// knows it for commits.
  bool lasting = true;
};

/// What a control file does with a text.
struct Request {
  std::function<Async<RequestAnswer>(const OperationPtr& op, std::string text)> run;
  /// Refuses what can be refused at the first write, before the text is complete. Not called for JSON, which may
  /// contain options that allow more.
  std::function<Attempt<void>(const OperationPtr& op)> check = {};
  /// Whether the file shows a record and accepts a JSON object with changes to it. The next open finds the record, not
  /// the text or the outcome.
  bool is_for_record = false;
  /// The collection of the record that it creates, and what the record belongs to: for a message, its thread.
  std::string creates = {}, owner = {};
};

/// In bytes. Larger texts do not fit a record of the service anyway.
inline constexpr std::size_t kLongestText = 64 << 10;

class RequestText {
 public:
  enum class Phase { collecting, running, done };
  /// `draft`: where it is kept while it is written; nullptr: nowhere.
  explicit RequestText(Caller writer, std::shared_ptr<Draft> draft = nullptr)
      : writer_(std::move(writer)), draft_(std::move(draft)) {}

  [[nodiscard]] const std::shared_ptr<Draft>& draft() const { return draft_; }
  /// The process that wrote first, without that write's cancellation token.
  [[nodiscard]] Caller writer() const { return {writer_.uid, writer_.gid, writer_.pid, {}}; }
  [[nodiscard]] Phase phase() const PLAYFS_EXCLUDES(mutex_);

  /// Whether these bytes are acceptable here: the text must stay within the limit, be UTF-8, and be a single JSON
  /// object if it starts as one.
  [[nodiscard]] Status may_take(std::uint64_t offset, std::string_view data) const PLAYFS_EXCLUDES(mutex_);
  /// Whether these bytes would complete a JSON object.
  [[nodiscard]] bool completes(std::uint64_t offset, std::string_view data) const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool begins_object(std::uint64_t offset, std::string_view data) const PLAYFS_EXCLUDES(mutex_);
  /// REQUIRES: may_take() succeeded.
  void take(std::uint64_t offset, std::string_view data) PLAYFS_EXCLUDES(mutex_);
  void resize(std::uint64_t size) PLAYFS_EXCLUDES(mutex_);
  /// The end of the file as its writers see it.
  [[nodiscard]] std::uint64_t end() const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::string bytes(std::uint64_t offset, std::size_t size) const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool empty() const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool is_blank() const PLAYFS_EXCLUDES(mutex_);
  /// What was written so far, acceptable or not.
  [[nodiscard]] std::string written() const PLAYFS_EXCLUDES(mutex_);

  /// Moves from collecting to running; true for the one caller that is to run it. `order`: larger than that of the
  /// requests of the file that were complete before.
  [[nodiscard]] bool start(std::int64_t order) PLAYFS_EXCLUDES(mutex_);
  /// 0 until it is started.
  [[nodiscard]] std::int64_t order() const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::chrono::steady_clock::time_point started() const PLAYFS_EXCLUDES(mutex_);
  /// The service has answered; the kernel may still have to be told. finish() implies it.
  void set_answered() PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool is_answered() const PLAYFS_EXCLUDES(mutex_);
  /// Whether its writes return before its outcome. So it is with all but a complete JSON object: its last write
  /// returns the outcome.
  [[nodiscard]] bool is_accepted() const PLAYFS_EXCLUDES(mutex_);
  /// The text, if it is acceptable as a request.
  [[nodiscard]] Result<std::string> whole() const PLAYFS_EXCLUDES(mutex_);
  /// `document` is what readers see, errors included. No effect if already done.
  void finish(Status outcome, ShownText document) PLAYFS_EXCLUDES(mutex_);

  /// nullopt until done.
  [[nodiscard]] std::optional<Status> outcome() const PLAYFS_EXCLUDES(mutex_);
  /// Whether the text equals `text` and it is unknown whether the service has accepted it.
  [[nodiscard]] bool is_unanswered(std::string_view text) const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] ShownText document() const PLAYFS_EXCLUDES(mutex_);
  void wait(const CancelToken& cancel, Callback<void> done) PLAYFS_EXCLUDES(mutex_) {
    wait(Until::done, cancel, std::move(done));
  }
  void wait_for_answer(const CancelToken& cancel, Callback<void> done) PLAYFS_EXCLUDES(mutex_) {
    wait(Until::answered, cancel, std::move(done));
  }

  /// The writer of the last piece no longer waits for the outcome.
  void leave() PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool is_left() const PLAYFS_EXCLUDES(mutex_);
  /// Whether these bytes repeat the last piece of a JSON object whose outcome their writer does not have: a library
  /// repeats a write that a signal interrupted. The writer waits again, then.
  [[nodiscard]] bool rejoin(std::uint64_t offset, std::string_view data) PLAYFS_EXCLUDES(mutex_);

  // How the end of the text is detected.
  struct Watched {
    bool tried = false;  ///< a watch was requested
    bool armed = false;  ///< the watch is in place
    CloseWatcher::Watch watch = 0;
  };
  [[nodiscard]] Watched watched() const PLAYFS_EXCLUDES(mutex_);
  void set_watched(Watched watched) PLAYFS_EXCLUDES(mutex_);
  /// Increases with every change of the text.
  [[nodiscard]] std::uint64_t changes() const PLAYFS_EXCLUDES(mutex_);

 private:
  enum class Until { answered, done };
  struct Waiter {
    Until until;
    UniqueFunction<void(Status)> answer;
    CancelToken::Registration registration;
  };
  void wait(Until until, const CancelToken& cancel, Callback<void> done) PLAYFS_EXCLUDES(mutex_);
  /// Those who wait for no more than that.
  [[nodiscard]] std::list<Waiter> take_waiters(Until until) PLAYFS_REQUIRES(mutex_);
  [[nodiscard]] std::string with(std::uint64_t offset, std::string_view data) const PLAYFS_REQUIRES(mutex_);

  const Caller writer_;
  const std::shared_ptr<Draft> draft_;
  mutable Mutex mutex_;
  Phase phase_ PLAYFS_GUARDED_BY(mutex_) = Phase::collecting;
  std::int64_t order_ PLAYFS_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point started_ PLAYFS_GUARDED_BY(mutex_);
  bool is_answered_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::optional<std::uint64_t> begin_ PLAYFS_GUARDED_BY(mutex_);  ///< where the text starts in the file: 0, or the old
                                                                  ///< size for `>>`
  std::string bytes_ PLAYFS_GUARDED_BY(mutex_);
  std::uint64_t changes_ PLAYFS_GUARDED_BY(mutex_) = 0;
  Watched watched_ PLAYFS_GUARDED_BY(mutex_);
  std::optional<Status> outcome_ PLAYFS_GUARDED_BY(mutex_);
  ShownText document_ PLAYFS_GUARDED_BY(mutex_){std::string()};
  bool is_left_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::list<Waiter> waiters_ PLAYFS_GUARDED_BY(mutex_);
};
using RequestTextPtr = std::shared_ptr<RequestText>;
/// The operation that runs a request holds its text by this name.
inline constexpr const char* kRequestText = "request text";

}  // namespace playfs::vfs
