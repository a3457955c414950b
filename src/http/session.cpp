#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <iterator>
#include <utility>

#include <poll.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/string.hpp>

#include "base/log.h"
#include "http/server_core.h"
#include "service/problem.h"

namespace playfs::http {

namespace {

constexpr std::size_t kFirstRead = 1024;
constexpr std::size_t kReadOfBody = 16 * 1024;
/// The overhead of a header field over its text, both as parsed and as passed on.
constexpr std::size_t kOfField = 160;
/// A request that waited no longer than this is served even if the client has closed its sending side: some clients
/// half-close after sending.
constexpr std::chrono::seconds kSurelyWanted{1};

/// What an answer sent in pieces holds: one piece, and the list of the others.
constexpr std::size_t kHeldByStream = 128 * 1024;
/// A thread with a larger answer waits until the connection has taken it.
constexpr std::size_t kLargeAnswer = 64 * 1024;
constexpr std::chrono::seconds kTryAgain{5};
/// Per request, however long its answer.
constexpr int kMostSpared = 3;
/// Retry-After for a refused watcher: those that are here stay for hours.
constexpr std::chrono::seconds kWatchLater{30};

HttpResponse problem_response(int status, std::string code, std::string message) {
  return service::response_of({status, std::move(code), std::move(message), std::nullopt, {}, {}});
}

HttpResponse busy_response(std::string message, std::chrono::seconds retry_after = kTryAgain) {
  return service::response_of({503, "unavailable", std::move(message), retry_after, {}, {}});
}

/// The request without its body. If the target is an absolute URL, as proxies get them, its host replaces Host.
HttpRequest head_of(bh::request<bh::string_body>& message) {
  constexpr std::string_view scheme = "http://";
  std::string_view target(message.target().data(), message.target().size());
  if (beast::iequals(target.substr(0, scheme.size()), scheme)) {
    const std::string whole(target);
    auto slash = whole.find('/', scheme.size());
    message.set(bh::field::host, whole.substr(scheme.size(), slash - scheme.size()));
    message.target(slash == std::string::npos ? "/" : whole.substr(slash));
  }
  HttpRequest request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message) request.headers.add(std::string(field.name_string()), std::string(field.value()));
  return request;
}

/// Whether the head at the start of `bytes`, even if incomplete, has more than `most` fields.
bool has_more_fields(std::string_view bytes, std::size_t most) {
  const std::string_view head = bytes.substr(0, bytes.find("\r\n\r\n"));
  return static_cast<std::size_t>(std::count(head.begin(), head.end(), '\n')) > most;
}

/// With any other encoding the end of the body is unknown, and the rest must not be taken for the next request.
bool has_known_framing(const bh::request<bh::string_body>& message) {
  switch (message.count(bh::field::transfer_encoding)) {
    case 0: return true;
    case 1: return message.version() == 11 && beast::iequals(message[bh::field::transfer_encoding], "chunked");
    default: return false;
  }
}

}  // namespace

void Server::Core::Session::wait_for_request() {
  // Assigning an empty string would keep the memory for as long as the connection lives.
  std::string().swap(head_);
  std::string().swap(body_);
  parser_.reset();
  asker_ = client_;
  if (buffer_.size() > 0) return read_header();  // a pipelined request
  buffer_ = beast::flat_buffer(kMostBuffered);
  idle_ = true;
  if (core_->stopping_) return hang_up();
  stream_.expires_after(core_->options_.idle_time);
  stream_.async_read_some(buffer_.prepare(kFirstRead), [self = shared_from_this()](error_code error, std::size_t size) {
    if (error) return self->hang_up();
    self->buffer_.commit(size);
    self->read_header();
  });
}

void Server::Core::Session::close_if_unoccupied() {
  // Only the wait is cancelled: a request that arrived this very moment is still answered.
  if (idle_) stream_.cancel();
  else if (live_) say_goodbye();
}

void Server::Core::Session::read_header() {
  idle_ = false;
  parser_.emplace();
  parser_->header_limit(core_->options_.header_limit);
  parser_->body_limit(core_->options_.body_limit);
  head_bytes_ = body_bytes_ = fields_ = 0;
  times_spared_ = 0;
  stream_.expires_after(core_->options_.header_time);
  take_what_came();
}

/// Parses the buffered bytes, and reads on if the request is incomplete. Chunk extensions and trailers are discarded,
/// but they count: up to the size of the largest body in total, and never more than fits the buffer at once.
void Server::Core::Session::take_what_came() {
  error_code error;
  while (buffer_.size() > 0 && !error) {
    const bool in_header = !parser_->is_header_done();
    const auto bytes = buffer_.cdata();
    // Before parsing, which costs more per field than sending one.
    if (in_header &&
        has_more_fields({static_cast<const char*>(bytes.data()), bytes.size()}, core_->options_.field_limit))
      return refuse(431, "header_too_large", "the request has too many header fields");
    const std::size_t used = parser_->put(buffer_.data(), error);
    buffer_.consume(used);
    (in_header ? head_bytes_ : body_bytes_) += used;
    if (error && error != bh::error::need_more) return in_header ? after_bad_header(error) : after_body(error);
    if (in_header && parser_->is_header_done()) return after_header();
    if (parser_->is_done()) return after_body({});
    if (body_bytes_ > 2 * core_->options_.body_limit) return after_body(bh::error::body_limit);
  }
  read_more();
}

void Server::Core::Session::read_more() {
  if (buffer_.size() == buffer_.max_size()) return after_body(bh::error::buffer_overflow);
  const std::size_t wanted = parser_->is_header_done() ? kReadOfBody : kFirstRead;
  auto room = buffer_.prepare(std::min(wanted, buffer_.max_size() - buffer_.size()));
  if (!hold(size_of_request())) return refuse(busy_response("this client has too many unfinished requests"));
  stream_.async_read_some(room, [self = shared_from_this()](error_code error, std::size_t size) {
    if (error) return self->parser_->is_header_done() ? self->after_body(error) : self->after_bad_header(error);
    self->buffer_.commit(size);
    self->core_->held_.moved(self.get(), size);
    self->take_what_came();
  });
}

std::size_t Server::Core::Session::size_of_request() const {
  // The head twice: as parsed, and as passed on.
  return buffer_.capacity() + 2 * head_bytes_ + kOfField * fields_ + parser_->get().body().capacity();
}

void Server::Core::Session::after_header() {
  const ServerOptions& options = core_->options_;
  auto& message = parser_->get();
  fields_ = static_cast<std::size_t>(std::distance(message.begin(), message.end()));
  if (!has_known_framing(message))
    return refuse(501, "not_implemented", "the only supported Transfer-Encoding is chunked");
  if (parser_->is_done()) return after_body({});
  if (options.client) {
    core_->held_.release(this);
    asker_ = service::counted_address(options.client(head_of(message), peer_));
  }
  if (beast::iequals(message[bh::field::expect], "100-continue")) return offer_to_continue();
  read_body();
}

void Server::Core::Session::after_bad_header(error_code error) {
  if (error == bh::error::header_limit) return refuse(431, "header_too_large", "the request's header is too large");
  if (error == bh::error::body_limit)
    return refuse(413, "record_too_large", "the body is larger than any record; split content into chunks");
  if (error == beast::error::timeout) return refuse(408, "timeout", "the request's header did not arrive in time");
  after_bad_bytes(error);
}

/// Of the parser, or of the connection.
void Server::Core::Session::after_bad_bytes(error_code error) {
  if (error.category() == boost::system::system_category() || error == asio::error::eof) return hang_up();
  refuse(400, "invalid_request", "not an HTTP request: " + error.message());
}

void Server::Core::Session::offer_to_continue() {
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  stream_.expires_after(core_->options_.body_time);
  asio::async_write(stream_, asio::buffer(kContinue), [self = shared_from_this()](error_code error, std::size_t) {
    if (error) return self->hang_up();
    self->read_body();
  });
}

void Server::Core::Session::read_body() {
  stream_.expires_after(core_->options_.body_time);
  take_what_came();
}

void Server::Core::Session::after_body(error_code error) {
  if (error == bh::error::body_limit)
    return refuse(413, "record_too_large", "the body is larger than any record; split content into chunks");
  // Newer Boosts count trailers as part of the header.
  if (error == bh::error::buffer_overflow || error == bh::error::header_limit)
    return refuse(431, "header_too_large", "a chunk's extensions or the trailers are too large");
  if (error == beast::error::timeout) return refuse(408, "timeout", "the request's body did not arrive in time");
  if (error) return after_bad_bytes(error);

  auto& message = parser_->get();
  if (message.version() >= 11 && message.count(bh::field::host) == 0)
    return refuse(400, "invalid_request", "not an HTTP request: no Host");
  // The checks of who may ask read one of each; a second one could be what a proxy or a browser goes by.
  for (const auto once : {bh::field::host, bh::field::origin})
    if (message.count(once) > 1)
      return refuse(400, "invalid_request", "not an HTTP request: more than one " + std::string(bh::to_string(once)));
  HttpRequest request = head_of(message);
  const std::size_t held = size_of_request();
  request.body = std::move(message.body());
  const auto& client = core_->options_.client;
  core_->held_.release(this);
  asker_ = client ? service::counted_address(client(request, peer_)) : client_;
  is_being_served_ = true;
  if (!hold(held)) {
    is_being_served_ = false;
    return refuse(busy_response("this client has too many requests in progress"));
  }
  serve(std::move(request));
}

void Server::Core::Session::serve(HttpRequest request) {
  stream_.expires_never();  // the handler has its own limits
  // Keeps the I/O thread in its loop: asio does not count a connection that only waits for its handler.
  auto work = asio::make_work_guard(core_->io_);
  const auto requested = std::chrono::steady_clock::now();
  FairPool& pool = core_->pool_for(request);
  pool.offer(asker_, [self = shared_from_this(), work, requested, request = std::move(request)](bool has_turn) mutable {
    if (!has_turn) return self->respond_busy("too many requests are waiting; try again in a moment");
    if (!self->core_->giving_up_ && self->is_wanted(requested)) return answer(std::move(self), request);
    auto& io = self->core_->io_;
    asio::post(io, [self = std::move(self)] { self->hang_up(); });
  });
}

void Server::Core::Session::answer(std::shared_ptr<Session> self, const HttpRequest& request) {
  auto answer = self->core_->handler_(request, self->peer_);
  const bool is_large = answer.response.body.size() > kLargeAnswer;
  std::promise<void> taking;
  auto taken = taking.get_future();
  auto& io = self->core_->io_;
  asio::post(io, [self = std::move(self), answer = std::move(answer), taking = std::move(taking)]() mutable {
    self->respond(std::move(answer));
  });
  // Waits until the answer is counted; otherwise pool threads could produce more than the I/O thread accounts for.
  if (is_large) taken.wait();
}

bool Server::Core::Session::try_to_spare() {
  const bool is_reading = parser_.has_value();  // it exists until there is an answer
  const bool is_writing = !is_reading && sent_ < head_.size() + body_.size();
  if (times_spared_ == kMostSpared || !stream_.socket().is_open() || !(is_reading || is_writing)) return false;
  const short awaited = is_reading ? POLLIN : POLLOUT;
  pollfd peer{descriptor_, awaited, 0};
  if (poll(&peer, 1, 0) <= 0 || (peer.revents & awaited) == 0) return false;
  ++times_spared_;
  return true;
}

bool Server::Core::Session::is_wanted(std::chrono::steady_clock::time_point requested) const {
  pollfd end{descriptor_, POLLRDHUP, 0};
  if (poll(&end, 1, 0) <= 0) return true;
  const bool is_half_open = (end.revents & (POLLHUP | POLLERR)) == 0;
  return is_half_open && std::chrono::steady_clock::now() - requested < kSurelyWanted;
}

void Server::Core::Session::respond_busy(std::string message) {
  ++core_->refused_;
  respond(busy_response(std::move(message)));
}

void Server::Core::Session::respond(Answer answer) {
  is_being_served_ = false;
  Sessions& of_client = core_->sessions_[client_];
  of_client.splice(of_client.end(), of_client, place_);
  const auto& request = parser_->get();
  Framing framing;
  framing.old_client = request.version() == 10;
  framing.keep_alive = request.keep_alive() && !core_->stopping_;
  const bool bodiless = answer.response.status == 204 || answer.response.status == 304;
  if (answer.live) {
    if (!begin_to_watch(std::move(answer.live)))
      return refuse(busy_response("too many connections wait for events", kWatchLater));
    framing.keep_alive = false;  // the body ends with the connection
  } else if (!bodiless) {
    framing.content_length = answer.size();
    // Before HTTP/1.1 such a body ends with the connection.
    framing.chunked = !framing.content_length && !framing.old_client;
    framing.keep_alive = framing.keep_alive && (framing.content_length || framing.chunked);
  }
  if (!bodiless && request.method() != bh::verb::head) {
    body_ = std::move(answer.response.body);
    source_ = std::move(answer.source);
    left_ = source_ ? source_->size().value_or(kUnknown) : 0;
    chunked_ = framing.chunked;
  }
  if (!hold(buffer_.capacity() + (source_ ? kHeldByStream : body_.capacity()))) {
    source_.reset();
    left_ = 0;
    return refuse(busy_response("this client has too many unread responses"));
  }
  parser_.reset();
  write(answer.response, framing, [self = shared_from_this()](error_code error) { self->after_write(error); });
}

template <class Done>
void Server::Core::Session::write(const HttpResponse& answer, Framing framing, Done done) {
  framing.date = core_->date_.now();
  last_ = !framing.keep_alive;
  head_ = print_head(answer, framing);
  sent_ = 0;
  write_rest(std::move(done));
}

/// The time limit restarts whenever the peer takes something.
template <class Done>
void Server::Core::Session::write_rest(Done done) {
  const std::size_t of_head = std::min(sent_, head_.size());
  const std::array rest = {asio::buffer(std::as_const(head_)) + of_head,
                           asio::buffer(std::as_const(body_)) + (sent_ - of_head)};
  stream_.expires_after(live_ ? core_->options_.watch_time : core_->options_.write_time);
  stream_.async_write_some(
      rest, [self = shared_from_this(), done = std::move(done)](error_code error, std::size_t size) mutable {
        self->sent_ += size;
        self->core_->held_.moved(self.get(), size);
        if (error || self->sent_ == self->head_.size() + self->body_.size()) return done(error);
        self->write_rest(std::move(done));
      });
}

void Server::Core::Session::after_write(error_code error) {
  if (error) return hang_up();
  if (live_) return go_on_watching();
  if (source_ && left_ > 0) return read_piece();
  source_.reset();
  core_->held_.release(this);
  if (last_) return hang_up();
  wait_for_request();
}

void Server::Core::Session::send_body(std::string body) {
  head_.clear();
  body_ = std::move(body);
  sent_ = 0;
  write_rest([self = shared_from_this()](error_code error) { self->after_write(error); });
}

bool Server::Core::Session::hold(std::size_t bytes) { return core_->hold(this, asker_, bytes, !is_being_served_); }

void Server::Core::Session::close() {
  core_->held_.release(this);
  stream_.close();
}

void Server::Core::Session::refuse(int status, std::string code, std::string message) {
  refuse(problem_response(status, std::move(code), std::move(message)));
}

void Server::Core::Session::refuse(HttpResponse answer) {
  if (answer.status == 503) ++core_->refused_;
  core_->held_.release(this);
  parser_.reset();
  buffer_ = beast::flat_buffer(kMostBuffered);
  Framing framing;
  framing.keep_alive = false;  // the start of the next request is unknown
  framing.content_length = answer.body.size();
  body_ = std::move(answer.body);
  write(answer, framing, [self = shared_from_this()](error_code error) {
    if (error) return self->hang_up();
    error_code ignored;
    self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    self->stream_.expires_after(self->core_->options_.header_time);
    self->drain();
  });
}

void Server::Core::Session::drain() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(kFirstRead), [self = shared_from_this()](error_code error, std::size_t) {
    if (error) return self->hang_up();
    self->drain();
  });
}

void Server::Core::Session::hang_up() {
  core_->held_.release(this);
  error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  stream_.close();
}

}  // namespace playfs::http
