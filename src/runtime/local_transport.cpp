#include "runtime/local_transport.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "runtime/local_stream.h"

namespace playfs::runtime {

namespace {
Error interrupted() { return Error{ErrorCode::interrupted, "the request was cancelled"}; }
}  // namespace

/// Kept alive by pending executor tasks after the transport is gone. A callback is called by the code that takes it out
/// of the table, and so exactly once.
class LocalTransport::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(const service::Service& service, std::string host, service::ChangeFeed* feed)
      : service_(service), host_(std::move(host)), feed_(feed) {}

  std::uint64_t add(Callback<HttpResponse> done) {
    MutexLock lock(mutex_);
    outstanding_.emplace(++last_, Outstanding{std::move(done), {}});
    return last_;
  }

  void watch(std::uint64_t number, const CancelToken& cancel) {
    // Without the lock: a token that is cancelled already runs the hook at once.
    auto registration =
        cancel.on_cancel([self = shared_from_this(), number] { self->answer(number, fail(interrupted())); });
    MutexLock lock(mutex_);
    if (auto found = outstanding_.find(number); found != outstanding_.end())
      found->second.registration = std::move(registration);
  }

  void serve(std::uint64_t number, HttpRequest request) {
    {
      MutexLock lock(mutex_);
      if (outstanding_.count(number) == 0) return;
      ++serving_;
    }
    request.headers.set("Host", host_);
    HttpResponse response = service_.handle(request, {"local"});
    {
      MutexLock lock(mutex_);
      --serving_;
      idle_.notify_all();
    }
    answer(number, std::move(response));
  }

  [[nodiscard]] bool has_events() const { return feed_; }

  void add(const std::shared_ptr<LocalStream>& stream, const CancelToken& cancel) {
    auto registration = cancel.on_cancel([weak = std::weak_ptr(stream)] {
      if (auto cancelled = weak.lock()) cancelled->end(fail(interrupted()));
    });
    MutexLock lock(mutex_);
    std::erase_if(streams_, [](const auto& each) { return each.first.expired(); });
    streams_.emplace_back(stream, std::move(registration));
  }

  void serve(const std::shared_ptr<LocalStream>& stream, HttpRequest request) {
    {
      MutexLock lock(mutex_);
      if (is_closed_) return;  // and close() has ended the stream
      ++serving_;
    }
    request.headers.set("Host", host_);
    if (service_.is_watch(request)) {
      const service::Watch watch = service_.watch(request);
      stream->begin(watch.response, watch.after, *feed_);
    } else {
      stream->begin(service_.handle(request, {"local"}), std::nullopt, *feed_);
    }
    MutexLock lock(mutex_);
    --serving_;
    idle_.notify_all();
  }

  void close() {
    std::map<std::uint64_t, Outstanding> left;
    std::vector<std::pair<std::weak_ptr<LocalStream>, CancelToken::Registration>> streams;
    {
      MutexLock lock(mutex_);
      is_closed_ = true;
      left.swap(outstanding_);
      streams.swap(streams_);
      while (serving_ > 0) idle_.wait(mutex_);
    }
    for (auto& [number, waiting] : left) waiting.done(fail(interrupted()));
    for (auto& [weak, registration] : streams)
      if (auto stream = weak.lock()) stream->end(fail(interrupted()));
  }

 private:
  struct Outstanding {
    Callback<HttpResponse> done;
    CancelToken::Registration registration;
  };

  void answer(std::uint64_t number, Result<HttpResponse> result) {
    std::optional<Outstanding> taken;
    {
      MutexLock lock(mutex_);
      auto found = outstanding_.find(number);
      if (found == outstanding_.end()) return;
      taken.emplace(std::move(found->second));
      outstanding_.erase(found);
    }
    taken->done(std::move(result));
  }

  const service::Service& service_;
  const std::string host_;
  service::ChangeFeed* const feed_;
  Mutex mutex_;
  Condition idle_;
  std::uint64_t last_ PLAYFS_GUARDED_BY(mutex_) = 0;
  int serving_ PLAYFS_GUARDED_BY(mutex_) = 0;
  bool is_closed_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::vector<std::pair<std::weak_ptr<LocalStream>, CancelToken::Registration>> streams_ PLAYFS_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Outstanding> outstanding_ PLAYFS_GUARDED_BY(mutex_);
};

LocalTransport::LocalTransport(const service::Service& service, const std::string& site_id, Executor& executor,
                               service::ChangeFeed* feed)
    : origin_("local://" + site_id), executor_(executor), core_(std::make_shared<Core>(service, site_id, feed)) {}

LocalTransport::~LocalTransport() { core_->close(); }

void LocalTransport::send(HttpRequest request, net::Deadline, CancelToken cancel, Callback<HttpResponse> done) {
  std::uint64_t number = core_->add(std::move(done));
  executor_.post(
      [core = core_, number, request = std::move(request)]() mutable { core->serve(number, std::move(request)); });
  core_->watch(number, cancel);
}

void LocalTransport::stream(HttpRequest request, net::StreamLimits limits, CancelToken cancel,
                            net::StreamReceiver receiver) {
  if (!core_->has_events())
    return Transport::stream(std::move(request), limits, std::move(cancel), std::move(receiver));
  auto stream = std::make_shared<LocalStream>(std::move(receiver));
  core_->add(stream, cancel);
  executor_.post(
      [core = core_, stream, request = std::move(request)]() mutable { core->serve(stream, std::move(request)); });
}

}  // namespace playfs::runtime
