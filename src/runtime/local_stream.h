// The events of a playground in the same process, as a response without an end. Thread-safe. Pieces come on the feed's
// thread, one at a time, and the end comes after the last of them.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/mutex.h"
#include "net/transport.h"
#include "service/change_feed.h"

namespace playfs::runtime {

class LocalStream : public std::enable_shared_from_this<LocalStream> {
 public:
  explicit LocalStream(net::StreamReceiver receiver) : receiver_(std::move(receiver)) {}

  /// An executor may have dropped what would have begun it.
  ~LocalStream() { end(fail(ErrorCode::interrupted, "the stream was not begun")); }
  LocalStream(const LocalStream&) = delete;
  LocalStream& operator=(const LocalStream&) = delete;

  /// Passes on the beginning, and then the changes after that position, if there is one. REQUIRES: called once.
  void begin(const HttpResponse& response, std::optional<service::Position> after, service::ChangeFeed& feed);
  /// The receiver gets nothing more, but for the end. Idempotent.
  void end(Status status);

 private:
  /// Returns whether to go on.
  template <class F>
  bool deliver(F f) PLAYFS_EXCLUDES(mutex_);
  void take(std::string_view text);
  void finish() PLAYFS_EXCLUDES(mutex_);

  net::StreamReceiver receiver_;  ///< used while is_delivering_, and by finish()
  Mutex mutex_;
  bool is_delivering_ PLAYFS_GUARDED_BY(mutex_) = false;
  bool wants_more_ PLAYFS_GUARDED_BY(mutex_) = false;  ///< before the subscription was here
  bool is_finished_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::optional<Status> end_ PLAYFS_GUARDED_BY(mutex_);
  std::shared_ptr<service::ChangeFeed::Subscription> subscription_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::runtime
