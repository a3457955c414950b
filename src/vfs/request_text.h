// The text of one request through a control file, from its first byte to what it came to.
//
// It collects what write(2) brings, as a file would: later bytes behind earlier ones, or over them. It is complete when
// the file is closed, or, for a JSON object, with the brace that closes it. Whoever reads waits for its outcome.
// Thread-safe.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "vfs/attempt.h"
#include "vfs/close_watcher.h"

namespace playfs::vfs {

/// What a request came to, as text to be read.
struct RequestAnswer {
  std::string text;
  /// The file says so until the next request. Otherwise it says what holds by then: the publisher remembers commits.
  bool lasting = true;
};

/// What a control file does with a text.
struct Request {
  std::function<Attempt<RequestAnswer>(const OperationPtr& op, const std::string& text)> run;
  /// What can be refused at the first write, before the text is complete. Not asked for JSON, which may allow more.
  std::function<Attempt<void>(const OperationPtr& op)> check = {};
};

class RequestText {
 public:
  enum class Phase { collecting, running, done };
  explicit RequestText(Caller writer) : writer_(std::move(writer)) {}

  /// Who wrote first, without what cancels that write.
  [[nodiscard]] Caller writer() const { return {writer_.uid, writer_.gid, writer_.pid, {}}; }
  [[nodiscard]] Phase phase() const PLAYFS_EXCLUDES(mutex_);

  /// Whether these bytes may stand here: the text stays short enough, UTF-8, and one JSON object if it begins as one.
  [[nodiscard]] Status may_take(std::uint64_t offset, std::string_view data) const PLAYFS_EXCLUDES(mutex_);
  /// Whether a JSON object would be whole with them.
  [[nodiscard]] bool completes(std::uint64_t offset, std::string_view data) const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool begins_object(std::uint64_t offset, std::string_view data) const PLAYFS_EXCLUDES(mutex_);
  /// REQUIRES: may_take.
  void take(std::uint64_t offset, std::string_view data) PLAYFS_EXCLUDES(mutex_);
  void resize(std::uint64_t size) PLAYFS_EXCLUDES(mutex_);
  /// Where the file ends for those who write it.
  [[nodiscard]] std::uint64_t end() const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::string bytes(std::uint64_t offset, std::size_t size) const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool empty() const PLAYFS_EXCLUDES(mutex_);

  /// From collecting to running: true for the one who is to run it.
  [[nodiscard]] bool start() PLAYFS_EXCLUDES(mutex_);
  /// The text, where it can be a request as it stands.
  [[nodiscard]] Result<std::string> whole() const PLAYFS_EXCLUDES(mutex_);
  /// `document` is what is read, also of an error. Nothing happens where it was done before.
  void finish(Status outcome, std::string document) PLAYFS_EXCLUDES(mutex_);

  /// nullopt until it is done.
  [[nodiscard]] std::optional<Status> outcome() const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::string document() const PLAYFS_EXCLUDES(mutex_);
  void wait(const CancelToken& cancel, Callback<void> done) PLAYFS_EXCLUDES(mutex_);

  // How its end is noticed.
  struct Watched {
    bool tried = false;  ///< a watch was asked for
    bool armed = false;  ///< and is in place
    CloseWatcher::Watch watch = 0;
  };
  [[nodiscard]] Watched watched() const PLAYFS_EXCLUDES(mutex_);
  void set_watched(Watched watched) PLAYFS_EXCLUDES(mutex_);
  /// Grows with every change of the text.
  [[nodiscard]] std::uint64_t changes() const PLAYFS_EXCLUDES(mutex_);

 private:
  struct Waiter {
    UniqueFunction<void(Status)> answer;
    CancelToken::Registration registration;
  };
  [[nodiscard]] std::string with(std::uint64_t offset, std::string_view data) const PLAYFS_REQUIRES(mutex_);

  const Caller writer_;
  mutable Mutex mutex_;
  Phase phase_ PLAYFS_GUARDED_BY(mutex_) = Phase::collecting;
  std::optional<std::uint64_t> begin_ PLAYFS_GUARDED_BY(mutex_);  ///< of the text in the file: 0, or what `>>` found
  std::string bytes_ PLAYFS_GUARDED_BY(mutex_);
  std::uint64_t changes_ PLAYFS_GUARDED_BY(mutex_) = 0;
  Watched watched_ PLAYFS_GUARDED_BY(mutex_);
  std::optional<Status> outcome_ PLAYFS_GUARDED_BY(mutex_);
  std::string document_ PLAYFS_GUARDED_BY(mutex_);
  std::list<Waiter> waiters_ PLAYFS_GUARDED_BY(mutex_);
};
using RequestTextPtr = std::shared_ptr<RequestText>;

}  // namespace playfs::vfs
