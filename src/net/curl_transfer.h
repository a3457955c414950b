// One request in libcurl: sets up its easy handle, collects and bounds the response or passes on its pieces, classifies
// the outcome. Internal to this module; belongs to the I/O thread, except `cancelled`.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "net/curl_functions.h"
#include "net/curl_transport.h"

namespace playfs::net {

class CurlTransfer {
 public:
  CurlTransfer(HttpRequest request, Deadline deadline, Callback<HttpResponse> done);
  /// A response without an end. `limits.silence` is the caller's to watch, see silent_at().
  CurlTransfer(HttpRequest request, StreamLimits limits, StreamReceiver receiver);
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  /// Creates the easy handle. `origin` is normalised, see CurlTransport::create. Returns false if out of memory.
  bool prepare(const std::string& origin, const CurlOptions& options);
  [[nodiscard]] CURL* handle() const { return easy_.get(); }
  /// The result, once libcurl is done.
  Result<HttpResponse> outcome(CURLcode code);
  [[nodiscard]] bool is_stream() const { return is_stream_; }
  /// Of a stream: when the silence becomes too long.
  [[nodiscard]] SteadyTime silent_at() const { return heard_at_ + silence_; }

  std::uint64_t id = 0;
  std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
  CancelToken::Registration registration;
  Callback<HttpResponse> done;

 private:
  struct Cleanup {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };

  static int before_request(void* self, char*, char*, int, int);
  static std::size_t on_header(char* data, std::size_t, std::size_t size, void* self);
  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self);
  bool take_header(std::string_view line);
  bool take_piece(std::string_view piece);
  /// Of a stream, at the end of a response's headers.
  bool begin();
  [[nodiscard]] bool may_change_something() const { return request_.method != "GET" && request_.method != "HEAD"; }

  HttpRequest request_;
  Deadline deadline_;
  bool is_stream_ = false;
  StreamReceiver receiver_;
  std::chrono::milliseconds silence_{0};
  SteadyTime heard_at_;
  bool begun_ = false;
  bool refused_ = false;  ///< the receiver wants no more
  HttpResponse response_;
  std::size_t ceiling_ = 0;
  std::size_t header_bytes_ = 0;
  bool header_whole_ = false;
  bool too_large_ = false;
  int requests_ = 0;  ///< number sent by libcurl; only counted if they may change something
  char error_text_[CURL_ERROR_SIZE] = {};
  std::unique_ptr<curl_slist, Cleanup> header_list_;
  std::unique_ptr<CURL, Cleanup> easy_;  // last member, destroyed first: it points into those above
};

}  // namespace playfs::net
