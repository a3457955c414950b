#include "net/curl_transfer.h"

#include <fmt/format.h>

#include "base/text.h"
#include "net/origin.h"

namespace playfs::net {

namespace {

constexpr std::size_t kMaxHeaderBytes = 64 * 1024;

constexpr std::string_view kBlanks = " \t\r\n";

ErrorCode classify(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_AGAIN: return ErrorCode::unreachable;
    case CURLE_OPERATION_TIMEDOUT: return ErrorCode::timed_out;
    case CURLE_ABORTED_BY_CALLBACK: return ErrorCode::interrupted;
    // Anything else is not valid HTTP or a bad certificate: a retry cannot help.
    default: return ErrorCode::protocol;
  }
}

}  // namespace

CurlTransfer::CurlTransfer(HttpRequest request, Deadline deadline, Callback<HttpResponse> done_callback)
    : done(std::move(done_callback)), request_(std::move(request)), deadline_(deadline) {}

CurlTransfer::CurlTransfer(HttpRequest request, StreamLimits limits, StreamReceiver receiver)
    : request_(std::move(request)),
      deadline_{limits.connect, std::chrono::milliseconds(0)},
      is_stream_(true),
      receiver_(std::move(receiver)),
      silence_(limits.silence) {
  done = [ended = std::move(receiver_.ended)](Result<HttpResponse> result) mutable {
    ended(result ? Status() : Status(fail(std::move(result).error())));
  };
}

bool CurlTransfer::prepare(const std::string& origin, const CurlOptions& options) {
  easy_.reset(curl_easy_init());
  if (!easy_) return false;
  ceiling_ = options.response_ceiling;
  bool sound = true;
  auto set = [&](CURLoption option, auto value) {
    sound = sound && curl_easy_setopt(easy_.get(), option, value) == CURLE_OK;
  };

  set(CURLOPT_PRIVATE, this);
  set(CURLOPT_ERRORBUFFER, &error_text_[0]);
  set(CURLOPT_URL, (origin + request_.target).c_str());
  set(CURLOPT_PATH_AS_IS, 1L);  // an id such as ".." must not climb the tree
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // cancelling does not wait for the resolver
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  // Only if HTTP/2 is possible: otherwise requests would queue behind the first response of a slow server.
  set(CURLOPT_PIPEWAIT, origin.starts_with("https:") ? 1L : 0L);
  // A compressed stream could hold back what its sender has flushed.
  if (!is_stream_) set(CURLOPT_ACCEPT_ENCODING, "gzip");
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!options.ca_file.empty()) set(CURLOPT_CAINFO, options.ca_file.c_str());
  if (is_loopback(origin)) set(CURLOPT_PROXY, "");
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(deadline_.connect.count()));
  if (!is_stream_) {
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(deadline_.total.count()));
    set(CURLOPT_LOW_SPEED_LIMIT, options.low_speed);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.low_speed_time.count()));
  }
  heard_at_ = std::chrono::steady_clock::now();
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, 30L);
  set(CURLOPT_TCP_KEEPINTVL, 15L);
  set(CURLOPT_USERAGENT, options.user_agent.c_str());
  set(CURLOPT_HEADERFUNCTION, &CurlTransfer::on_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &CurlTransfer::on_body);
  set(CURLOPT_WRITEDATA, this);

  if (request_.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request_.method != "GET" || !request_.body.empty()) {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    set(CURLOPT_POSTFIELDS, request_.body.data());
    if (request_.method != "POST") set(CURLOPT_CUSTOMREQUEST, request_.method.c_str());
    // libcurl repeats a request by itself if a kept-alive connection dies before any response. A POST may be repeated
    // only with its key.
    if (request_.method == "POST" && !request_.headers.get("Idempotency-Key")) set(CURLOPT_FRESH_CONNECT, 1L);
    // Even then the caller does it, not libcurl: the response to a second attempt says nothing about the first, so the
    // caller must know that there were two. A second PATCH would undo what others have set since the first.
    if (may_change_something()) {
      set(CURLOPT_PREREQFUNCTION, &CurlTransfer::before_request);
      set(CURLOPT_PREREQDATA, this);
    }
  }

  auto append = [&](const std::string& line) {
    curl_slist* longer = curl_slist_append(header_list_.get(), line.c_str());
    if (!longer) return sound = false;
    static_cast<void>(header_list_.release());
    header_list_.reset(longer);
    return true;
  };
  append("Expect:");  // avoids the round trip of Expect: 100-continue
  if (!request_.headers.get("Content-Type")) append("Content-Type:");
  for (const auto& [name, value] : request_.headers) append(value.empty() ? name + ";" : name + ": " + value);
  set(CURLOPT_HTTPHEADER, header_list_.get());
  return sound;
}

Result<HttpResponse> CurlTransfer::outcome(CURLcode code) {
  if (too_large_)
    return fail(ErrorCode::protocol, fmt::format("{} {}: the response is larger than {} bytes, or its header than {}",
                                                 request_.method, request_.target, ceiling_, kMaxHeaderBytes));
  if (refused_) return fail(ErrorCode::interrupted, "the receiver has ended the response");
  // libcurl accepts a connection that closes within the headers.
  if (code == CURLE_OK && !header_whole_)
    return fail(ErrorCode::unreachable,
                fmt::format("{} {}: the response was cut off", request_.method, request_.target));
  if (code == CURLE_OK) {
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    response_.status = static_cast<int>(status);
    return std::move(response_);
  }
  if (requests_ > 1)
    return fail(ErrorCode::unreachable, fmt::format("{} {}: the connection was lost before a response arrived",
                                                    request_.method, request_.target));
  std::string_view words = trim(error_text_, kBlanks);
  if (words.empty()) words = curl_easy_strerror(code);
  std::string hint;
  if (code == CURLE_PEER_FAILED_VERIFICATION) hint = "give the site's own certificate authority with -o cafile=FILE";
  Error error{classify(code), fmt::format("{} {}: {}", request_.method, request_.target, words), std::move(hint)};
  error.is_unsent = may_change_something() && requests_ == 0;
  return fail(std::move(error));
}

int CurlTransfer::before_request(void* self, char*, char*, int, int) {
  return ++static_cast<CurlTransfer*>(self)->requests_ == 1 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

std::size_t CurlTransfer::on_header(char* data, std::size_t, std::size_t size, void* self) {
  return static_cast<CurlTransfer*>(self)->take_header({data, size}) ? size : 0;
}

bool CurlTransfer::begin() {
  long status = 0;
  // An interim response, or a proxy's to CONNECT, has none.
  if (begun_ || curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status) != CURLE_OK || status < 200)
    return true;
  begun_ = true;
  response_.status = static_cast<int>(status);
  refused_ = !receiver_.begun(response_);
  return !refused_;
}

bool CurlTransfer::take_header(std::string_view line) {
  heard_at_ = std::chrono::steady_clock::now();
  header_bytes_ += line.size();
  if (header_bytes_ > kMaxHeaderBytes) {
    too_large_ = true;
    return false;
  }
  if (line.starts_with("HTTP/")) {  // the final response, or an interim one before it
    response_.headers = {};
    header_whole_ = false;
    return true;
  }
  if (trim(line, kBlanks).empty()) {
    header_whole_ = true;
    if (is_stream_) return begin();
  }
  auto colon = line.find(':');
  if (colon != std::string_view::npos && colon > 0)
    response_.headers.add(std::string(trim(line.substr(0, colon), kBlanks)),
                          std::string(trim(line.substr(colon + 1), kBlanks)));
  return true;
}

std::size_t CurlTransfer::on_body(char* data, std::size_t, std::size_t size, void* self_pointer) {
  auto* self = static_cast<CurlTransfer*>(self_pointer);
  if (self->is_stream_) return self->take_piece({data, size}) ? size : 0;
  if (size > self->ceiling_ - self->response_.body.size()) {
    self->too_large_ = true;
    return 0;
  }
  self->response_.body.append(data, size);
  return size;
}

bool CurlTransfer::take_piece(std::string_view piece) {
  static_assert(CURL_MAX_WRITE_SIZE <= 64 << 10);
  heard_at_ = std::chrono::steady_clock::now();
  refused_ = refused_ || !receiver_.piece(piece);
  return !refused_;
}

}  // namespace playfs::net
