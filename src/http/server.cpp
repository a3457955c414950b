#include "http/server.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <string_view>
#include <utility>

#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>

#include <fmt/format.h>

#include "base/histogram.h"
#include "base/log.h"
#include "http/server_core.h"

namespace playfs::http {

namespace {

Error error_from_boost(const error_code& error, const std::string& what) {
  if (error.category() == boost::system::system_category()) return error_from_errno(error.value(), what);
  return Error{ErrorCode::io, what + ": " + error.message()};
}

/// More would only take turns, and each holds an answer: with twice as many, attackers' compressed lists took 70 MB
/// more and made honest reads wait ten times as long. A thread that finds the next request waiting is also cheaper than
/// one that has to be woken for it.
unsigned default_readers() { return std::max(2u, std::thread::hardware_concurrency()); }

/// What separates reads of a few records from large lists, above all compressed ones.
constexpr std::chrono::milliseconds kLightRead{5};

/// Half the cores, so that the Data API finds a core however many pages wait.
unsigned default_page_threads() { return std::max(1u, std::thread::hardware_concurrency() / 2); }

/// The limit on unsent data in the kernel. The rest stays with us, where it is counted; and a slow reader shows
/// progress every 32 KB rather than every few megabytes.
constexpr int kMostUnsent = 64 * 1024;

/// Between two rounds of the other connections' events. The kernel's queue of new connections holds 4,096: attackers
/// who keep it full delay each newcomer by as many rounds as it takes to empty it.
constexpr int kAcceptedAtOnce = 256;

/// Whether accept() failed because of the connection that it would have returned: others can be accepted.
bool is_of_peer(const error_code& error) {
  return error == asio::error::connection_aborted || error == boost::system::errc::protocol_error;
}

bool is_reading(std::string_view method) { return method == "GET" || method == "HEAD" || method == "OPTIONS"; }

std::string text_of(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  return address.to_string();
}

/// Without a free descriptor a client waits until others leave, so connections may not use them all.
ServerOptions within_descriptors(ServerOptions options) {
  constexpr std::size_t for_all_else = 256;  // databases, files, the log
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const std::size_t most = limit.rlim_cur;
    options.connection_limit = std::min(options.connection_limit, most - std::min(most / 2, for_all_else));
  }
  options.most_watchers = std::min(options.most_watchers, options.connection_limit / 3 * 2);
  return options;
}

}  // namespace

Server::Core::Core(ServerOptions options, Handler handler)
    : options_(within_descriptors(std::move(options))),
      handler_(std::move(handler)),
      io_(1),
      acceptor_(io_),
      pause_(io_),
      stop_timer_(io_),
      reads_(options_.read_threads ? options_.read_threads : default_readers(), options_.most_waiting,
             options_.light_threads, kLightRead),
      writes_(options_.write_threads, options_.most_waiting),
      checks_(2, options_.most_waiting),  // one may wait for the store
      pages_(options_.page_threads ? options_.page_threads : default_page_threads(), options_.most_waiting_pages,
             options_.light_threads),
      pieces_(default_page_threads(), options_.most_waiting_pages),
      held_(options_.most_held, options_.share_of_held),
      watchers_(options_.most_watchers, options_.watchers_of_client) {}

Status Server::Core::listen() {
  error_code error;
  auto address = asio::ip::make_address(options_.address, error);
  if (error)
    return fail(ErrorCode::invalid_argument, "not a numeric address: " + options_.address,
                fmt::format("--listen 127.0.0.1:{0} for this machine alone, or 0.0.0.0:{0} for all", options_.port));
  tcp::endpoint wanted(address, options_.port);
  std::string what = fmt::format("listen on {} port {}", options_.address, options_.port);
  acceptor_.open(wanted.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(wanted, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (!error) acceptor_.non_blocking(true, error);
  // Otherwise accept() waits in poll(2), and with it everybody, if a peer is gone by the time it is accepted.
  if (!error) acceptor_.set_option(asio::socket_base::enable_connection_aborted(true), error);
  // Connections inherit both: two calls less for each.
  if (!error) acceptor_.set_option(tcp::no_delay(true), error);
  if (!error) setsockopt(acceptor_.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kMostUnsent, sizeof kMostUnsent);
  if (!error) local_ = acceptor_.local_endpoint(error);
  if (!error) return {};
  Error failed = error_from_boost(error, what);
  const std::string host = address.is_v6() ? "[" + options_.address + "]" : options_.address;
  if (error == asio::error::address_in_use) {
    failed.code = ErrorCode::busy;
    failed.hint = fmt::format("--listen {}:0 takes a free port; ss -ltnp 'sport = :{}' shows who has this one", host,
                              options_.port);
  } else if (failed.code == ErrorCode::permission_denied) {
    failed.hint =
        fmt::format("--listen {}:8787, and a proxy before it: low ports need root, or CAP_NET_BIND_SERVICE", host);
  } else if (error == std::errc::address_not_available) {
    failed.code = ErrorCode::invalid_argument;
    failed.hint = "ip -brief address lists this machine's addresses; --listen 0.0.0.0:PORT is all of them";
  }
  return fail(std::move(failed));
}

void Server::Core::run() {
  accept();
  thread_ = std::thread([this] {
    // An asio handler may throw std::bad_alloc; that loses the connection concerned, and the server goes on.
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
  acceptor_.async_accept(newcomer_, [this](error_code error, tcp::socket socket) {
    if (stopping_) return;
    if (error == asio::error::operation_aborted) return;
    if (is_of_peer(error)) return accept();
    if (error) {
      // Most likely out of descriptors: keep serving, and close an idle connection of the client with the most.
      const auto now = std::chrono::steady_clock::now();
      if (!complained_ || now - *complained_ >= std::chrono::minutes(1)) {
        complained_ = now;
        log_warning("cannot accept connections: " + error.message());
      }
      static_cast<void>(make_room());
      pause_.expires_after(std::chrono::milliseconds(100));
      pause_.async_wait([this](error_code) {
        if (!stopping_) accept();
      });
      return;
    }
    take(std::move(socket));
    for (int i = 1; i < kAcceptedAtOnce; ++i) {
      tcp::socket another(io_);
      acceptor_.accept(another, newcomer_, error);
      if (is_of_peer(error)) continue;
      if (error) break;
      take(std::move(another));
    }
    accept();
  });
}

void Server::Core::take(tcp::socket socket) {
  // Without room the connection is closed at once, which a client sees as a refusal and retries.
  if (session_count_ < options_.connection_limit || make_room())
    std::make_shared<Session>(shared_from_this(), std::move(socket), text_of(newcomer_.address()))->wait_for_request();
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
  Session* given_up = nullptr;
  std::size_t most = 0;
  for (const auto& [client, theirs] : sessions_) {
    if (theirs.size() <= most) continue;
    auto found = std::find_if(theirs.begin(), theirs.end(), [](Session* each) { return each->can_give_way(); });
    if (found != theirs.end()) given_up = *found, most = theirs.size();
  }
  if (given_up) given_up->close();
  return given_up != nullptr;
}

bool Server::Core::hold(Session* session, const std::string& client, std::size_t bytes, bool can_go) {
  for (const Session* first_spared = nullptr;;) {
    const auto verdict = held_.room_for(session, client, bytes);
    if (Session* other = verdict.in_the_way; !verdict.fits && other && other != first_spared) {
      if (other->try_to_spare()) {
        held_.spare(other);
        if (!first_spared) first_spared = other;
      } else {
        other->close();
      }
      continue;
    }
    if (!verdict.fits && bytes > kAlwaysRoom) return false;
    held_.hold(session, client, bytes, can_go);
    return true;
  }
}

FairPool& Server::Core::pool_for(const HttpRequest& request) {
  if (options_.is_check && options_.is_check(request)) return checks_;
  if (options_.is_page && options_.is_page(request)) return pages_;
  return is_reading(request.method) ? reads_ : writes_;
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
    giving_up_ = true;
    for (const auto& [client, sessions] : sessions_)
      for (Session* session : sessions) session->close();
  });
  for (const auto& [client, sessions] : sessions_)
    for (Session* session : sessions) session->close_if_unoccupied();
}

void Server::Core::stop() {
  std::call_once(stopped_, [this] {
    asio::post(io_, [this] { begin_stop(); });
    // The I/O thread ends once every connection is closed and its handler has answered.
    thread_.join();
    for (FairPool* pool : {&reads_, &writes_, &checks_, &pages_, &pieces_}) pool->join();
  });
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Handler handler) {
  auto core = std::make_shared<Core>(std::move(options), std::move(handler));
  PLAYFS_CHECK(core->listen());
  core->run();
  return std::unique_ptr<Server>(new Server(std::move(core)));
}

ServerLoad Server::Core::load() {
  return {{{{"reads", reads_.waiting()},
            {"writes", writes_.waiting()},
            {"pages", pages_.waiting()},
            {"pieces", pieces_.waiting()},
            {"checks", checks_.waiting()}}},
          session_count_,
          watchers_.all(),
          held_.total(),
          refused_};
}

void print_load(const ServerLoad& load, std::string& out) {
  auto add = std::back_inserter(out);
  print_metric_head(out, "playfs_http_waiting_requests", "gauge", "Requests that wait for their turn.");
  for (const auto& [name, waiting] : load.queues)
    fmt::format_to(add, "playfs_http_waiting_requests{{queue=\"{}\"}} {}\n", name, waiting);
  const auto print = [&](const char* name, const char* type, const char* help, std::uint64_t value) {
    print_metric_head(out, name, type, help);
    fmt::format_to(add, "{} {}\n", name, value);
  };
  print("playfs_http_connections", "gauge", "Open connections.", load.connections);
  print("playfs_http_watchers", "gauge", "Connections that listen to events.", load.watchers);
  print("playfs_http_held_bytes", "gauge", "Memory held for connections.", load.held_bytes);
  print("playfs_http_refused_total", "counter", "Requests refused, since a queue or the memory was full.",
        load.refused);
}

Server::Server(std::shared_ptr<Core> core) : core_(std::move(core)) {}
Server::~Server() { stop(); }

void Server::stop() { core_->stop(); }
ServerLoad Server::load() const { return core_->load(); }
std::uint16_t Server::port() const { return core_->local().port(); }

std::string Server::endpoint() const {
  auto local = core_->local();
  std::string address = local.address().to_string();
  if (local.address().is_v6()) address = '[' + address + ']';
  return address + ':' + std::to_string(local.port());
}

}  // namespace playfs::http
