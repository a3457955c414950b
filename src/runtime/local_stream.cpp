#include "runtime/local_stream.h"

#include <utility>

namespace playfs::runtime {

void LocalStream::begin(const HttpResponse& response, std::optional<service::Position> after,
                        service::ChangeFeed& feed) {
  const bool goes_on = deliver([&] {
    return receiver_.begun({response.status, response.headers, {}}) && receiver_.piece(response.body);
  });
  if (!goes_on) return;
  if (!after) return end({});
  std::shared_ptr<service::ChangeFeed::Subscription> subscription =
      feed.subscribe(*after, [self = shared_from_this()](const service::ChangeFeed::Text& text) { self->take(*text); });
  bool wants_more = false;
  {
    MutexLock lock(mutex_);
    if (is_finished_) return;  // and ends the subscription
    subscription_ = subscription;
    wants_more = std::exchange(wants_more_, false);
  }
  if (wants_more) subscription->more();
}

void LocalStream::take(std::string_view text) {
  if (!deliver([&] { return receiver_.piece(text); })) return;
  std::shared_ptr<service::ChangeFeed::Subscription> subscription;
  {
    MutexLock lock(mutex_);
    subscription = subscription_;
    wants_more_ = !subscription;
  }
  if (subscription) subscription->more();
}

template <class F>
bool LocalStream::deliver(F f) {
  {
    MutexLock lock(mutex_);
    if (end_) return false;
    is_delivering_ = true;
  }
  const bool is_wanted = f();
  {
    MutexLock lock(mutex_);
    is_delivering_ = false;
    if (!is_wanted && !end_) end_ = fail(ErrorCode::interrupted, "the receiver has ended the response");
    if (!end_) return true;
  }
  finish();
  return false;
}

void LocalStream::end(Status status) {
  {
    MutexLock lock(mutex_);
    if (!end_) end_ = std::move(status);
    if (is_delivering_) return;
  }
  finish();
}

void LocalStream::finish() {
  std::shared_ptr<service::ChangeFeed::Subscription> subscription;  // ends without the lock
  Status status;
  {
    MutexLock lock(mutex_);
    if (std::exchange(is_finished_, true)) return;
    subscription.swap(subscription_);
    status = *end_;
  }
  receiver_.ended(std::move(status));
}

}  // namespace playfs::runtime
