#include "net/curl_transport.h"

#include <arpa/inet.h>
#include <pthread.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "base/mutex.h"
#include "net/curl_transfer.h"

namespace playfs::net {

namespace {

/// Concurrent requests per HTTP/2 connection. libcurl's default of 100 would delay a prefetch. If the server allows
/// fewer, libcurl opens more connections.
constexpr long kMaxStreams = 512;
/// Connections to an HTTP/2 site. Each further one costs handshakes and slow start, while waiting for a free stream
/// costs one round trip. Sixteen are enough for all requests that may hang at once if each carries a hundred streams,
/// which servers usually allow.
constexpr long kMultiplexedConnections = 16;
constexpr int kPollMilliseconds = 60'000;  // libcurl's timers and wake-ups end a poll sooner

struct MultiCleanup {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

struct UrlCleanup {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, UrlCleanup>;

/// A component of the URL; empty if absent.
std::string part_of(const Url& url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK) return {};
  std::string copy = text;
  curl_free(text);
  return copy;
}

/// Whether libcurl would return the site as it is, so that it need not be loaded for that.
bool is_normal_origin(std::string_view site) {
  const bool is_secure = site.starts_with("https://");
  if (!is_secure && !site.starts_with("http://")) return false;
  site.remove_prefix(is_secure ? 8 : 7);
  const std::size_t colon = std::min(site.find(':'), site.size());
  const std::string host(site.substr(0, colon));
  if (colon < site.size()) {
    const std::string_view digits = site.substr(colon + 1);
    std::uint16_t port = 0;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    const bool is_default = port == (is_secure ? 443 : 80);
    if (problem != std::errc() || end != digits.data() + digits.size() || digits[0] == '0' || is_default) return false;
  }
  in_addr address{};
  if (inet_pton(AF_INET, host.c_str(), &address) == 1) return true;
  // Other numbers are addresses to libcurl; what begins with a letter, as does its last part, is a name.
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const std::string_view last = std::string_view(host).substr(host.rfind('.') + 1);  // npos + 1 is 0
  return !last.empty() && is_letter(last[0]) && is_letter(host[0]) && host.find("..") == std::string::npos &&
         std::all_of(host.begin(), host.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '.'; });
}

Result<std::string> normalise_origin(const std::string& site) {
  if (is_normal_origin(site)) return site;
  PLAYFS_CHECK(kCurl.load());
  auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is not a site: {}", site, why), "https://HOST[:PORT]");
  };
  Url url(curl_url());
  if (!url || curl_url_set(url.get(), CURLUPART_URL, site.c_str(), 0) != CURLUE_OK) return refuse("not a URL");
  std::string scheme = part_of(url, CURLUPART_SCHEME);
  std::string host = part_of(url, CURLUPART_HOST, CURLU_PUNYCODE);
  std::string path = part_of(url, CURLUPART_PATH);
  if (scheme != "http" && scheme != "https") return refuse("only http and https are supported");
  if (host.empty()) return refuse("it has no host");
  if (!part_of(url, CURLUPART_USER).empty() || !part_of(url, CURLUPART_PASSWORD).empty())
    return refuse("it must not contain credentials");
  if (path != "/" || !part_of(url, CURLUPART_QUERY).empty() || !part_of(url, CURLUPART_FRAGMENT).empty())
    return refuse("nothing may follow the host and port");
  std::transform(host.begin(), host.end(), host.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  std::string port = part_of(url, CURLUPART_PORT, CURLU_NO_DEFAULT_PORT);
  return scheme + "://" + host + (port.empty() ? "" : ":" + port);
}

bool can_be_sent(const HttpRequest& request) {
  auto has_control = [](std::string_view text, unsigned char lowest) {
    return std::any_of(text.begin(), text.end(), [&](char c) {
      auto byte = static_cast<unsigned char>(c);
      return byte < lowest || byte == 0x7F;
    });
  };
  if (request.method.empty() || has_control(request.method, '!')) return false;
  if (!request.target.starts_with('/') || has_control(request.target, '!')) return false;
  return std::none_of(request.headers.begin(), request.headers.end(), [&](const auto& field) {
    return field.first.empty() || has_control(field.first, '!') || has_control(field.second, ' ');
  });
}

Error not_sendable() {
  return {ErrorCode::invalid_argument, "the request has blanks or control characters that HTTP does not allow"};
}

}  // namespace

/// The I/O thread and its state.
class CurlTransport::Loop {
 public:
  Loop(std::string origin, CurlOptions options)
      : origin_(std::move(origin)),
        options_(std::move(options)),
        multi_(curl_multi_init()),
        inbox_(std::make_shared<Inbox>()) {
    inbox_->multi = multi_.get();
    curl_multi_setopt(multi_.get(), CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX));
    curl_multi_setopt(multi_.get(), CURLMOPT_MAX_CONCURRENT_STREAMS, kMaxStreams);
    curl_multi_setopt(multi_.get(), CURLMOPT_MAX_TOTAL_CONNECTIONS, options_.max_connections);
    curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, options_.width);
    thread_ = std::thread([this] { run(); });
  }

  ~Loop() {
    inbox_->close();
    thread_.join();
  }

  void send(std::unique_ptr<CurlTransfer> transfer, const CancelToken& cancel) {
    transfer->id = inbox_->next_id++;
    // The token may be cancelled before the transfer reaches the inbox, hence the flag as well as the message.
    transfer->registration = cancel.on_cancel([inbox = inbox_, flag = transfer->cancelled, id = transfer->id] {
      flag->store(true);
      inbox->cancel(id);
    });
    if (!inbox_->add(transfer)) transfer->done(fail(ErrorCode::interrupted, "the connection to the site is closing"));
  }

  std::size_t width() const { return static_cast<std::size_t>(is_multiplexed_.load() ? kMaxStreams : options_.width); }

 private:
  using TransferPtr = std::unique_ptr<CurlTransfer>;

  /// Work for the I/O thread from other threads. Shared because a cancel hook may run while the loop is destroyed.
  struct Inbox {
    Mutex mutex;
    std::vector<TransferPtr> added PLAYFS_GUARDED_BY(mutex);
    std::vector<std::uint64_t> cancelled PLAYFS_GUARDED_BY(mutex);
    bool closed PLAYFS_GUARDED_BY(mutex) = false;
    CURLM* multi PLAYFS_GUARDED_BY(mutex) = nullptr;  // nullptr once closed
    std::atomic<std::uint64_t> next_id = 1;

    /// Takes the transfer unless the inbox is closed.
    bool add(TransferPtr& transfer) {
      MutexLock lock(mutex);
      if (closed) return false;
      wake_for_first();
      added.push_back(std::move(transfer));
      return true;
    }
    void cancel(std::uint64_t id) {
      MutexLock lock(mutex);
      if (closed) return;
      wake_for_first();
      cancelled.push_back(id);
    }
    void close() {
      MutexLock lock(mutex);
      closed = true;
      wake();
      multi = nullptr;
    }
    /// Call before adding. The I/O thread takes everything at once, and on each wake-up libcurl polls every request in
    /// flight: waking it for each of hundreds of cancellations would be quadratic.
    void wake_for_first() PLAYFS_REQUIRES(mutex) {
      if (added.empty() && cancelled.empty()) wake();
    }
    void wake() PLAYFS_REQUIRES(mutex) {
      if (multi) curl_multi_wakeup(multi);
    }
  };

  void run() {
    pthread_setname_np(pthread_self(), "playfs-net");
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);  // other threads handle signals
    for (bool open = true; open;) {
      open = take_inbox();
      int running = 0;
      CURLMcode code = curl_multi_perform(multi_.get(), &running);
      if (code != CURLM_OK) log_error(fmt::format("libcurl: {}", curl_multi_strerror(code)));
      finish_completed();
      const int wait = end_silent_streams();
      if (open) curl_multi_poll(multi_.get(), nullptr, 0, wait, nullptr);
    }
    while (!active_.empty()) stop(active_.begin()->first, "the connection to the site is closing");
  }

  /// Starts and cancels transfers; returns false if the loop is to end.
  bool take_inbox() {
    std::vector<TransferPtr> added;
    std::vector<std::uint64_t> cancelled;
    bool closed = false;
    {
      MutexLock lock(inbox_->mutex);
      added.swap(inbox_->added);
      cancelled.swap(inbox_->cancelled);
      closed = inbox_->closed;
    }
    for (auto& transfer : added) start(std::move(transfer));
    for (auto id : cancelled) stop(id, "cancelled");
    return !closed;
  }

  void start(TransferPtr transfer) {
    if (transfer->cancelled->load()) {
      transfer->done(fail(ErrorCode::interrupted, "cancelled"));
    } else if (!transfer->prepare(origin_, options_) ||
               curl_multi_add_handle(multi_.get(), transfer->handle()) != CURLM_OK) {
      transfer->done(fail(ErrorCode::internal, "libcurl accepts no more requests"));
    } else {
      auto id = transfer->id;
      if (transfer->is_stream()) streams_.insert(id);
      active_.emplace(id, std::move(transfer));
      allow_streams();
    }
  }

  /// A stream keeps its connection, which must not be missing elsewhere.
  void allow_streams() {
    const auto streams = static_cast<long>(streams_.size());
    if (std::exchange(streams_allowed_, streams) == streams) return;
    curl_multi_setopt(multi_.get(), CURLMOPT_MAX_TOTAL_CONNECTIONS, options_.max_connections + streams);
  }

  /// Returns the milliseconds until the next one may have been silent for too long. libcurl's own limit counts bytes
  /// per second, of which a heartbeat has less than one.
  int end_silent_streams() {
    int wait = kPollMilliseconds;
    const auto now = std::chrono::steady_clock::now();
    std::vector<std::uint64_t> silent;
    for (const auto id : streams_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(active_.at(id)->silent_at() - now).count();
      if (left <= 0) silent.push_back(id);
      else wait = static_cast<int>(std::min<std::int64_t>(wait, left));
    }
    for (const auto id : silent)
      if (auto transfer = take(id))
        transfer->done(fail(ErrorCode::timed_out, "the stream has been silent for too long"));
    return silent.empty() ? wait : 0;
  }

  void stop(std::uint64_t id, std::string_view why) {
    if (auto transfer = take(id)) transfer->done(fail(ErrorCode::interrupted, std::string(why)));
  }

  void finish_completed() {
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      CURLcode code = message->data.result;  // the message is freed when its handle is removed
      CurlTransfer* finished = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &finished);
      long version = 0;
      if (code == CURLE_OK && curl_easy_getinfo(message->easy_handle, CURLINFO_HTTP_VERSION, &version) == CURLE_OK)
        learn(version == CURL_HTTP_VERSION_2_0);
      if (auto transfer = take(finished->id)) transfer->done(transfer->outcome(code));
    }
  }

  void learn(bool is_multiplexed) {
    if (is_multiplexed_.exchange(is_multiplexed) == is_multiplexed) return;
    curl_multi_setopt(multi_.get(), CURLMOPT_MAX_HOST_CONNECTIONS, is_multiplexed ? kMultiplexedConnections : 0L);
  }

  TransferPtr take(std::uint64_t id) {
    auto found = active_.find(id);
    if (found == active_.end()) return nullptr;
    TransferPtr transfer = std::move(found->second);
    active_.erase(found);
    streams_.erase(id);
    curl_multi_remove_handle(multi_.get(), transfer->handle());
    return transfer;
  }

  const std::string origin_;
  const CurlOptions options_;
  std::unique_ptr<CURLM, MultiCleanup> multi_;
  std::shared_ptr<Inbox> inbox_;
  std::map<std::uint64_t, TransferPtr> active_;  // I/O thread only, like the next two
  std::set<std::uint64_t> streams_;              // those in `active_` without an end
  long streams_allowed_ = 0;
  std::atomic<bool> is_multiplexed_ = false;
  std::thread thread_;
};

Result<std::unique_ptr<CurlTransport>> CurlTransport::create(const std::string& site, CurlOptions options) {
  PLAYFS_TRY(std::string origin, normalise_origin(site));
  return std::unique_ptr<CurlTransport>(new CurlTransport(std::move(origin), std::move(options)));
}

CurlTransport::CurlTransport(std::string origin, CurlOptions options)
    : origin_(std::move(origin)), options_(std::move(options)) {}

CurlTransport::~CurlTransport() = default;

Status CurlTransport::load_library() { return kCurl.load(); }

Result<CurlTransport::Loop*> CurlTransport::loop() {
  PLAYFS_CHECK(kCurl.load());
  // libcurl's global set-up happens once per process; everything else belongs to the transport.
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) return fail(ErrorCode::internal, fmt::format("libcurl: {}", curl_easy_strerror(ready)));
  std::call_once(begun_, [this] {
    loop_ = std::make_unique<Loop>(origin_, options_);
    known_ = loop_.get();
  });
  return loop_.get();
}

void CurlTransport::send(HttpRequest request, Deadline deadline, CancelToken cancel, Callback<HttpResponse> done) {
  if (!can_be_sent(request)) return done(fail(not_sendable()));
  auto used = loop();
  if (!used) return done(fail(std::move(used).error()));
  (*used)->send(std::make_unique<CurlTransfer>(std::move(request), deadline, std::move(done)), cancel);
}

void CurlTransport::stream(HttpRequest request, StreamLimits limits, CancelToken cancel, StreamReceiver receiver) {
  if (!can_be_sent(request)) return receiver.ended(fail(not_sendable()));
  auto used = loop();
  if (!used) return receiver.ended(fail(std::move(used).error()));
  (*used)->send(std::make_unique<CurlTransfer>(std::move(request), limits, std::move(receiver)), cancel);
}

std::size_t CurlTransport::width() const {
  const Loop* used = known_.load();
  return used ? used->width() : static_cast<std::size_t>(options_.width);
}

const std::string& CurlTransport::origin() const { return origin_; }

}  // namespace playfs::net
