// A transport that counts what it carries, by method and collection, and sends it as one client of many: the service
// takes X-Forwarded-For from a proxy that it trusts, and counts limits by that address. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "net/transport.h"

namespace playfs::bench {

/// How many requests of each kind, such as "GET revisions". Shared by the clients that are counted together.
class RequestCounts {
 public:
  void add(const std::string& kind) {
    MutexLock lock(mutex_);
    ++counts_[kind];
  }
  [[nodiscard]] std::map<std::string, std::uint64_t> take() const {
    MutexLock lock(mutex_);
    return counts_;
  }
  [[nodiscard]] std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const auto& [kind, count] : take()) sum += count;
    return sum;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::uint64_t> counts_ PLAYFS_GUARDED_BY(mutex_);
};

class CountedTransport final : public net::Transport {
 public:
  CountedTransport(std::unique_ptr<net::Transport> below, RequestCounts& counts, std::string address)
      : below_(std::move(below)), counts_(counts), address_(std::move(address)) {}

  void send(HttpRequest request, net::Deadline deadline, CancelToken cancel, Callback<HttpResponse> done) override {
    below_->send(counted(std::move(request)), deadline, std::move(cancel), std::move(done));
  }
  void stream(HttpRequest request, net::StreamLimits limits, CancelToken cancel,
              net::StreamReceiver receiver) override {
    below_->stream(counted(std::move(request)), limits, std::move(cancel), std::move(receiver));
  }
  [[nodiscard]] std::size_t width() const override { return below_->width(); }
  [[nodiscard]] const std::string& origin() const override { return below_->origin(); }

 private:
  /// "/.site/data/revisions/ID" → "revisions", and "a list of revisions" for its pages.
  static std::string subject_of(const std::string& target) {
    static constexpr std::string_view base = "/.site/data/";
    if (!target.starts_with(base)) return target.substr(0, target.find('?'));
    const std::string path = target.substr(base.size(), target.find('?') - base.size());
    const auto slash = path.find('/');
    return slash == std::string::npos ? "list of " + path : path.substr(0, slash);
  }
  HttpRequest counted(HttpRequest request) {
    const std::string subject = subject_of(request.target);
    const bool is_new = request.method == "POST" && subject.starts_with("list of ");
    counts_.add(request.method + ' ' + (is_new ? subject.substr(8) : subject));
    request.headers.add("X-Forwarded-For", address_);
    return request;
  }

  const std::unique_ptr<net::Transport> below_;
  RequestCounts& counts_;
  const std::string address_;
};

}  // namespace playfs::bench
