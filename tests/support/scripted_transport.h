// A transport to no service: it holds every request until the test answers it, with what it likes, so that a test can
// try every order of answers. For tests of the client right above the transport. (In front of a service:
// faulty_transport.h.)
// Thread-safe; callbacks run on the answering thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "net/transport.h"

namespace playfs::test {

class ScriptedTransport final : public net::Transport {
 public:
  explicit ScriptedTransport(std::string origin = "https://play.example.org") : origin_(std::move(origin)) {}
  ~ScriptedTransport() override {
    for (std::size_t i = 0; i < count(); ++i) answer(i, fail(ErrorCode::interrupted, "the transport is going away"));
    for (std::size_t i = 0; i < streams(); ++i) end(i, fail(ErrorCode::interrupted, "the transport is going away"));
  }

  void send(HttpRequest request, net::Deadline, CancelToken cancel, Callback<HttpResponse> done) override {
    auto exchange = std::make_shared<Exchange>();
    exchange->request = std::move(request);
    exchange->done = std::move(done);
    auto registration = cancel.on_cancel([weak = std::weak_ptr(exchange)] {
      if (auto cancelled = weak.lock()) cancelled->answer(fail(ErrorCode::interrupted, "cancelled"));
    });
    std::lock_guard lock(mutex_);
    exchange->registration = std::move(registration);
    exchanges_.push_back(std::move(exchange));
  }
  void stream(HttpRequest request, net::StreamLimits, CancelToken cancel, net::StreamReceiver receiver) override {
    auto stream = std::make_shared<Stream>();
    stream->request = std::move(request);
    stream->receiver = std::move(receiver);
    stream->registration = cancel.on_cancel([weak = std::weak_ptr(stream)] {
      if (auto cancelled = weak.lock()) cancelled->end(fail(ErrorCode::interrupted, "cancelled"));
    });
    std::lock_guard lock(mutex_);
    streams_.push_back(std::move(stream));
  }
  [[nodiscard]] const std::string& origin() const override { return origin_; }

  /// Streams so far, including those that have ended.
  [[nodiscard]] std::size_t streams() const {
    std::lock_guard lock(mutex_);
    return streams_.size();
  }
  // REQUIRES, of all: it has arrived. A stream whose receiver wants no more ends.
  [[nodiscard]] const HttpRequest& stream_request(std::size_t index) const { return at(index)->request; }
  void begin(std::size_t index, int status, HttpHeaders headers) {
    auto stream = at(index);
    if (!stream->ended && !stream->receiver.begun({status, std::move(headers), ""}))
      stream->end(fail(ErrorCode::interrupted, "refused"));
  }
  void push(std::size_t index, std::string_view piece) {
    auto stream = at(index);
    if (!stream->ended && !stream->receiver.piece(piece)) stream->end(fail(ErrorCode::interrupted, "refused"));
  }
  void end(std::size_t index, Status status = {}) { at(index)->end(std::move(status)); }
  [[nodiscard]] bool has_ended(std::size_t index) const { return at(index)->ended; }

  /// Requests so far, including answered ones.
  [[nodiscard]] std::size_t count() const {
    std::lock_guard lock(mutex_);
    return exchanges_.size();
  }
  /// REQUIRES: it has arrived.
  [[nodiscard]] const HttpRequest& request(std::size_t index) const { return exchange(index)->request; }

  /// Answers the request unless it was answered or cancelled. REQUIRES: it has arrived.
  void answer(std::size_t index, Result<HttpResponse> result) { exchange(index)->answer(std::move(result)); }
  void answer(std::size_t index, int status, std::string body, HttpHeaders headers = {}) {
    answer(index, HttpResponse{status, std::move(headers), std::move(body)});
  }

 private:
  struct Exchange {
    HttpRequest request;
    CancelToken::Registration registration;
    std::mutex mutex;
    Callback<HttpResponse> done;  // empty once answered

    void answer(Result<HttpResponse> result) {
      Callback<HttpResponse> callback;
      {
        std::lock_guard lock(mutex);
        std::swap(callback, done);
      }
      if (callback) callback(std::move(result));
    }
  };

  struct Stream {
    HttpRequest request;
    net::StreamReceiver receiver;
    CancelToken::Registration registration;
    std::atomic<bool> ended = false;

    void end(Status status) {
      if (!ended.exchange(true)) receiver.ended(std::move(status));
    }
  };

  std::shared_ptr<Stream> at(std::size_t index) const {
    std::lock_guard lock(mutex_);
    return streams_.at(index);
  }
  std::shared_ptr<Exchange> exchange(std::size_t index) const {
    std::lock_guard lock(mutex_);
    return exchanges_.at(index);
  }

  const std::string origin_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Exchange>> exchanges_;
  std::vector<std::shared_ptr<Stream>> streams_;
};

}  // namespace playfs::test
