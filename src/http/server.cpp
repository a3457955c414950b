#include "http/server.h"

#include <algorithm>
#include <array>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <fmt/format.h>

#include "base/log.h"
#include "http/response_head.h"
#include "service/client_address.h"
#include "service/problem.h"

namespace playfs::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bh = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::size_t kFirstRead = 1024;
/// What is buffered and not parsed yet: a header, a chunk's extensions, trailers.
constexpr std::size_t kMostBuffered = 64 * 1024;

Error error_from_boost(const error_code& error, const std::string& what) {
  if (error.category() == boost::system::system_category()) return error_from_errno(error.value(), what);
  return Error{ErrorCode::io, what + ": " + error.message(), {}, std::nullopt, 0, {}};
}

HttpResponse problem_response(int status, std::string code, std::string message) {
  return service::response_of({status, std::move(code), std::move(message), std::nullopt, {}, {}});
}

/// Requests that only read: they are many and short, and wait for nobody.
bool is_reading(std::string_view method) { return method == "GET" || method == "HEAD" || method == "OPTIONS"; }

/// Enough for some to wait for the disk while every core works. More would only take turns: a thread that finds the
/// next request waiting is cheaper than one that has to be woken for it.
unsigned default_readers() { return std::max(4u, 2 * std::thread::hardware_concurrency()); }

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

std::string text_of(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  return address.to_string();
}

}  // namespace

// All members are used on the I/O thread only, but for the options, the handler and the pools.
class Server::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(ServerOptions options, Handler handler)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        io_(1),
        acceptor_(io_),
        pause_(io_),
        stop_timer_(io_),
        readers_(options_.read_threads ? options_.read_threads : default_readers()),
        writers_(options_.write_threads) {}

  Status listen();
  void run();
  void stop();
  [[nodiscard]] tcp::endpoint local() const { return local_; }

 private:
  class Session;
  using Sessions = std::list<Session*>;

  void accept();
  void begin_stop();
  Sessions::iterator add(Session* session, const std::string& client);
  void forget(Sessions::iterator session, const std::string& client);
  /// Closes a connection of the client that has the most of them. False: all of those are being served.
  bool make_room();

  const ServerOptions options_;
  const Handler handler_;
  asio::io_context io_;
  tcp::acceptor acceptor_;
  tcp::endpoint local_;
  asio::steady_timer pause_;
  asio::steady_timer stop_timer_;
  asio::thread_pool readers_;
  asio::thread_pool writers_;
  DateHeader date_;
  std::unordered_map<std::string, Sessions> sessions_;  ///< of each client, the one first that was served longest ago
  std::size_t session_count_ = 0;
  bool stopping_ = false;
  std::thread thread_;
  std::once_flag stopped_;
};

/// One connection. It keeps itself alive through the operation it waits for.
class Server::Core::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Core> core, tcp::socket socket, std::string peer)
      : core_(std::move(core)),
        stream_(std::move(socket)),
        peer_(std::move(peer)),
        client_(service::counted_address(peer_)),
        place_(core_->add(this, client_)) {}
  ~Session() { core_->forget(place_, client_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void wait_for_request();
  void close_if_idle();
  void close() { stream_.close(); }
  [[nodiscard]] bool is_being_served() const { return is_being_served_; }

 private:
  using Parser = bh::request_parser<bh::string_body>;

  void read_header();
  void after_header(error_code error);
  void after_bad_header(error_code error);
  void offer_to_continue();
  void read_body();
  void read_some_of_the_body();
  void after_body(error_code error);
  void respond(HttpResponse answer);
  template <class Done>
  void write(HttpResponse answer, Framing framing, bool with_body, Done done);
  void after_response(error_code error);
  /// Answers what cannot be read to its end, and closes.
  void refuse(int status, std::string code, std::string message);
  /// Reads on for a while before closing: a socket closed with data unread takes the answer down with it.
  void drain();
  void hang_up();

  std::shared_ptr<Core> core_;
  beast::tcp_stream stream_;
  const std::string peer_;
  const std::string client_;  // whom it counts for
  const Sessions::iterator place_;
  beast::flat_buffer buffer_{kMostBuffered};
  std::optional<Parser> parser_;
  std::uint64_t body_bytes_ = 0;  // as sent, with all that frames them
  // The response being sent.
  std::string head_;
  std::string body_;
  bool last_ = false;  // the connection ends with it
  bool is_being_served_ = false;
  bool idle_ = true;
};

Status Server::Core::listen() {
  error_code error;
  auto address = asio::ip::make_address(options_.address, error);
  if (error) return fail(ErrorCode::invalid_argument, "not a numeric address: " + options_.address);
  tcp::endpoint wanted(address, options_.port);
  std::string what = fmt::format("listen on {} port {}", options_.address, options_.port);
  acceptor_.open(wanted.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(wanted, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (!error) local_ = acceptor_.local_endpoint(error);
  if (error) return fail(error_from_boost(error, what));
  return {};
}

void Server::Core::run() {
  accept();
  thread_ = std::thread([this] {
    // Handlers of asio may throw std::bad_alloc; the connection concerned is lost, the server goes on.
    for (;;) {
      try {
        io_.run();
        return;
      } catch (const std::exception& exception) {
        log_error(std::string("HTTP server: ") + exception.what());
      }
    }
  });
}

void Server::Core::accept() {
  acceptor_.async_accept([this](error_code error, tcp::socket socket) {
    if (stopping_) return;
    if (error == asio::error::operation_aborted) return;
    if (error) {
      // Out of descriptors, most likely: those who are connected are served, and somebody will leave.
      log_warning("cannot accept a connection: " + error.message());
      pause_.expires_after(std::chrono::milliseconds(100));
      pause_.async_wait([this](error_code) {
        if (!stopping_) accept();
      });
      return;
    }
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    auto peer = socket.remote_endpoint(error);
    // Where there is no room the connection is closed at once, which a client sees as a refusal and tries again.
    if (!error && (session_count_ < options_.connection_limit || make_room()))
      std::make_shared<Session>(shared_from_this(), std::move(socket), text_of(peer.address()))->wait_for_request();
    accept();
  });
}

Server::Core::Sessions::iterator Server::Core::add(Session* session, const std::string& client) {
  Sessions& of_client = sessions_[client];
  ++session_count_;
  return of_client.insert(of_client.end(), session);
}

void Server::Core::forget(Sessions::iterator session, const std::string& client) {
  auto of_client = sessions_.find(client);
  of_client->second.erase(session);
  --session_count_;
  if (of_client->second.empty()) sessions_.erase(of_client);
  if (stopping_ && session_count_ == 0) stop_timer_.cancel();
}

bool Server::Core::make_room() {
  auto greediest = std::max_element(sessions_.begin(), sessions_.end(), [](const auto& one, const auto& other) {
    return one.second.size() < other.second.size();
  });
  if (greediest == sessions_.end()) return false;
  const Sessions& theirs = greediest->second;
  auto given_up = std::find_if(theirs.begin(), theirs.end(), [](Session* each) { return !each->is_being_served(); });
  if (given_up == theirs.end()) return false;
  (*given_up)->close();
  return true;
}

void Server::Core::begin_stop() {
  stopping_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
  if (session_count_ == 0) return;
  stop_timer_.expires_after(options_.stop_time);
  stop_timer_.async_wait([this](error_code error) {
    if (error) return;
    for (const auto& [client, sessions] : sessions_)
      for (Session* session : sessions) session->close();
  });
  for (const auto& [client, sessions] : sessions_)
    for (Session* session : sessions) session->close_if_idle();
}

void Server::Core::stop() {
  std::call_once(stopped_, [this] {
    asio::post(io_, [this] { begin_stop(); });
    // Runs out of work once every connection is closed and its handler has answered.
    thread_.join();
    readers_.join();
    writers_.join();
  });
}

void Server::Core::Session::wait_for_request() {
  head_ = {};
  body_ = {};
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
  HttpRequest request = request_of(message);
  is_being_served_ = true;
  stream_.expires_never();  // the handler has its own limits
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

void Server::Core::Session::respond(HttpResponse answer) {
  is_being_served_ = false;
  Sessions& of_client = core_->sessions_[client_];
  of_client.splice(of_client.end(), of_client, place_);
  const auto& request = parser_->get();
  Framing framing;
  framing.old_client = request.version() == 10;
  framing.keep_alive = request.keep_alive() && !core_->stopping_;
  bool bodiless = answer.status == 204 || answer.status == 304;
  if (!bodiless) framing.content_length = answer.body.size();
  write(std::move(answer), framing, !bodiless && request.method() != bh::verb::head,
        [self = shared_from_this()](error_code error, std::size_t) { self->after_response(error); });
}

template <class Done>
void Server::Core::Session::write(HttpResponse answer, Framing framing, bool with_body, Done done) {
  framing.date = core_->date_.now();
  last_ = !framing.keep_alive;
  head_ = print_head(answer, framing);
  body_ = with_body ? std::move(answer.body) : std::string();
  stream_.expires_after(core_->options_.write_time);
  asio::async_write(stream_, std::array{asio::buffer(std::as_const(head_)), asio::buffer(std::as_const(body_))},
                    std::move(done));
}

void Server::Core::Session::after_response(error_code error) {
  if (error || last_) return hang_up();
  wait_for_request();
}

void Server::Core::Session::refuse(int status, std::string code, std::string message) {
  HttpResponse answer = problem_response(status, std::move(code), std::move(message));
  Framing framing;
  framing.keep_alive = false;  // where the next request would begin is unknown
  framing.content_length = answer.body.size();
  write(std::move(answer), framing, true, [self = shared_from_this()](error_code error, std::size_t) {
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
  error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  stream_.close();
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Handler handler) {
  auto core = std::make_shared<Core>(std::move(options), std::move(handler));
  PLAYFS_CHECK(core->listen());
  core->run();
  return std::unique_ptr<Server>(new Server(std::move(core)));
}

Server::Server(std::shared_ptr<Core> core) : core_(std::move(core)) {}
Server::~Server() { stop(); }

void Server::stop() { core_->stop(); }
std::uint16_t Server::port() const { return core_->local().port(); }

std::string Server::endpoint() const {
  auto local = core_->local();
  std::string address = local.address().to_string();
  if (local.address().is_v6()) address = '[' + address + ']';
  return address + ':' + std::to_string(local.port());
}

}  // namespace playfs::http
