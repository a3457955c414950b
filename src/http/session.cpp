#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

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

/// What an answer holds that is read piece by piece: a piece, and the list of where the others are.
constexpr std::size_t kHeldByStream = 128 * 1024;
/// What no answer is refused for: the kernel takes as much, and a refusal is not much less.
constexpr std::size_t kAlwaysRoom = 4 * 1024;
constexpr std::chrono::seconds kTryAgain{5};

HttpResponse problem_response(int status, std::string code, std::string message) {
  return service::response_of({status, std::move(code), std::move(message), std::nullopt, {}, {}});
}

/// Requests that only read: they are many and short, and wait for nobody.
bool is_reading(std::string_view method) { return method == "GET" || method == "HEAD" || method == "OPTIONS"; }

/// Takes the message's body along. A target may name the site too, as proxies are sent it; then that is the host.
HttpRequest request_of(bh::request<bh::string_body>& message) {
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
  request.body = std::move(message.body());
  return request;
}

/// Where the body ends cannot be told of any other encoding, and the rest must not be taken for the next request.
bool has_known_framing(const bh::request<bh::string_body>& message) {
  switch (message.count(bh::field::transfer_encoding)) {
    case 0: return true;
    case 1: return message.version() == 11 && beast::iequals(message[bh::field::transfer_encoding], "chunked");
    default: return false;
  }
}

}  // namespace

void Server::Core::Session::wait_for_request() {
  // Assigning an empty string would keep the memory, for as long as the client stays.
  std::string().swap(head_);
  std::string().swap(body_);
  parser_.reset();
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

void Server::Core::Session::close_if_idle() {
  // What arrived in this very instant is still answered: only the wait is cancelled.
  if (idle_) stream_.cancel();
}

void Server::Core::Session::read_header() {
  idle_ = false;
  parser_.emplace();
  parser_->header_limit(core_->options_.header_limit);
  parser_->body_limit(core_->options_.body_limit);
  stream_.expires_after(core_->options_.header_time);
  bh::async_read_header(stream_, buffer_, *parser_,
                        [self = shared_from_this()](error_code error, std::size_t) { self->after_header(error); });
}

void Server::Core::Session::after_header(error_code error) {
  if (error) return after_bad_header(error);
  if (!has_known_framing(parser_->get()))
    return refuse(501, "not_implemented", "this server knows no Transfer-Encoding but chunked");
  if (parser_->is_done()) return after_body({});
  if (beast::iequals(parser_->get()[bh::field::expect], "100-continue")) return offer_to_continue();
  read_body();
}

void Server::Core::Session::after_bad_header(error_code error) {
  if (error == bh::error::header_limit)
    return refuse(431, "header_too_large", "the request's header is larger than this server takes");
  if (error == bh::error::body_limit)
    return refuse(413, "record_too_large", "the body is larger than any record; split content into chunks");
  if (error == beast::error::timeout) return refuse(408, "timeout", "the request's header did not arrive in time");
  if (error == bh::error::end_of_stream || error.category() == boost::system::system_category() ||
      error == asio::error::eof)
    return hang_up();
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
  body_bytes_ = 0;
  read_some_of_the_body();
}

/// Chunk extensions and trailers are thrown away, and count all the same: as much again as the largest body, and not
/// more than fits into the buffer at a time.
void Server::Core::Session::read_some_of_the_body() {
  bh::async_read_some(stream_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t consumed) {
    self->body_bytes_ += consumed;
    if (error || self->parser_->is_done()) return self->after_body(error);
    if (self->body_bytes_ > 2 * self->core_->options_.body_limit) return self->after_body(bh::error::body_limit);
    self->read_some_of_the_body();
  });
}

void Server::Core::Session::after_body(error_code error) {
  if (error == bh::error::body_limit)
    return refuse(413, "record_too_large", "the body is larger than any record; split content into chunks");
  if (error == bh::error::buffer_overflow)
    return refuse(431, "header_too_large", "a chunk's extensions or the trailers are larger than this server takes");
  if (error == beast::error::timeout) return refuse(408, "timeout", "the request's body did not arrive in time");
  if (error) return hang_up();

  auto& message = parser_->get();
  if (message.count(bh::field::host) > 1)
    return refuse(400, "invalid_request", "not an HTTP request: more than one Host");
  serve(request_of(message));
}

void Server::Core::Session::serve(HttpRequest request) {
  is_being_served_ = true;
  const ServerOptions& options = core_->options_;
  asker_ = options.client ? service::counted_address(options.client(request, peer_)) : client_;
  stream_.expires_never();  // the handler has its own limits
  if (options.is_page && options.is_page(request)) return serve_page(std::move(request));
  // The guard keeps the I/O thread in its loop: a connection that only waits for its handler is no work to asio.
  auto work = asio::make_work_guard(core_->io_);
  auto& pool = is_reading(request.method) ? core_->readers_ : core_->writers_;
  asio::post(pool, [self = shared_from_this(), work, request = std::move(request)]() mutable {
    auto answer = self->core_->handler_(request, self->peer_);
    auto& io = self->core_->io_;
    asio::post(io,
               [self = std::move(self), answer = std::move(answer)]() mutable { self->respond(std::move(answer)); });
  });
}

void Server::Core::Session::serve_page(HttpRequest request) {
  auto work = asio::make_work_guard(core_->io_);
  core_->pages_.offer(asker_, [self = shared_from_this(), work, request = std::move(request)](bool has_turn) mutable {
    if (!has_turn)
      return self->respond_busy("more pages are asked for than this server can make; try again in a moment");
    Answer answer;
    const bool begun = !self->core_->giving_up_;
    if (begun) answer = self->core_->handler_(request, self->peer_);
    auto& io = self->core_->io_;
    asio::post(io, [self = std::move(self), begun, answer = std::move(answer)]() mutable {
      if (begun) self->respond(std::move(answer));
      else self->hang_up();
    });
  });
}

void Server::Core::Session::respond_busy(std::string message) {
  respond(service::response_of({503, "unavailable", std::move(message), kTryAgain, {}, {}}));
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
  if (!bodiless) framing.content_length = answer.size();
  if (!bodiless && request.method() != bh::verb::head) {
    body_ = std::move(answer.response.body);
    source_ = std::move(answer.source);
    left_ = source_ ? source_->size() : 0;
    const std::size_t held = source_ ? kHeldByStream : body_.size();
    if (held > kAlwaysRoom && !core_->take_bytes(asker_, held)) {
      source_.reset();
      return respond_busy("the answers that this client has not taken yet are all that this server holds for it");
    }
    held_ = held > kAlwaysRoom ? held : 0;
  }
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

/// The time limit begins anew with whatever the peer takes.
template <class Done>
void Server::Core::Session::write_rest(Done done) {
  const std::size_t of_head = std::min(sent_, head_.size());
  const std::array rest = {asio::buffer(std::as_const(head_)) + of_head,
                           asio::buffer(std::as_const(body_)) + (sent_ - of_head)};
  stream_.expires_after(core_->options_.write_time);
  stream_.async_write_some(
      rest, [self = shared_from_this(), done = std::move(done)](error_code error, std::size_t size) mutable {
        self->sent_ += size;
        if (error || self->sent_ == self->head_.size() + self->body_.size()) return done(error);
        self->write_rest(std::move(done));
      });
}

void Server::Core::Session::after_write(error_code error) {
  if (error) return hang_up();
  if (source_ && left_ > 0) return read_piece();
  source_.reset();
  give_back_bytes();
  if (last_) return hang_up();
  wait_for_request();
}

void Server::Core::Session::read_piece() {
  stream_.expires_never();
  auto work = asio::make_work_guard(core_->io_);
  core_->pieces_.go_on(asker_, [self = shared_from_this(), work](bool) mutable {
    auto piece = self->source_->next();
    auto& io = self->core_->io_;
    asio::post(io,
               [self = std::move(self), piece = std::move(piece)]() mutable { self->after_piece(std::move(piece)); });
  });
}

/// What is not all that was promised ends with the connection, so that nobody takes it for the whole.
void Server::Core::Session::after_piece(Result<std::string> piece) {
  if (!piece) log_warning("a response is cut short: " + piece.error().message);
  if (!piece || piece->empty() || piece->size() > left_ || !stream_.socket().is_open()) return hang_up();
  left_ -= piece->size();
  head_.clear();
  body_ = *std::move(piece);
  sent_ = 0;
  write_rest([self = shared_from_this()](error_code error) { self->after_write(error); });
}

void Server::Core::Session::give_back_bytes() { core_->queued_.remove(asker_, std::exchange(held_, 0)); }

void Server::Core::Session::close() {
  give_back_bytes();
  stream_.close();
}

void Server::Core::Session::refuse(int status, std::string code, std::string message) {
  HttpResponse answer = problem_response(status, std::move(code), std::move(message));
  Framing framing;
  framing.keep_alive = false;  // where the next request would begin is unknown
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
  give_back_bytes();
  error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  stream_.close();
}

}  // namespace playfs::http
