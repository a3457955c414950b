// Internals of the listener, for server.cpp, session.cpp, pieces.cpp and watching.cpp only: the state that connections
// share, and one connection. Only these files include Beast, which compiles slowly.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include "base/mutex.h"
#include "http/fair_pool.h"
#include "http/held_bytes.h"
#include "http/response_head.h"
#include "http/server.h"
#include "http/watchers.h"
#include "service/client_address.h"

namespace playfs::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bh = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

/// For unparsed bytes: a header, a chunk's extensions, trailers.
inline constexpr std::size_t kMostBuffered = 64 * 1024;
/// Always admitted, even without room: a refusal is not much smaller.
inline constexpr std::size_t kAlwaysRoom = 4 * 1024;
/// For the bytes to come of a body that ends where its source does.
inline constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

// All members are used on the I/O thread only, except for the options, the handler, the pools, `giving_up_` and what a
// mutex guards.
class Server::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(ServerOptions options, Handler handler);

  Status listen();
  void run();
  void stop();
  [[nodiscard]] tcp::endpoint local() const { return local_; }
  /// Callable on any thread.
  [[nodiscard]] ServerLoad load();

 private:
  class Session;
  using Sessions = std::list<Session*>;

  void accept();
  /// Serves a connection from `newcomer_`.
  void take(tcp::socket socket);
  void begin_stop();
  Sessions::iterator add(Session* session, const std::string& client);
  void forget(Sessions::iterator session, const std::string& client);
  /// Closes a connection that is not being served, of the client with the most connections. False if there is none.
  bool make_room();
  /// Sets the memory that a connection is charged for, closing others to make room. False if there is none for it.
  bool hold(Session* session, const std::string& client, std::size_t bytes, bool can_go);
  struct Arrived {
    std::weak_ptr<Session> watcher;
    LiveBody::Text text;
  };
  /// Gives a text to a watcher, on the I/O thread. Callable on any thread.
  void arrive(Arrived arrived);
  void give_out();
  FairPool& pool_for(const HttpRequest& request);

  const ServerOptions options_;
  const Handler handler_;
  asio::io_context io_;
  tcp::acceptor acceptor_;
  tcp::endpoint local_;
  tcp::endpoint newcomer_;  ///< the peer of the connection accepted last
  asio::steady_timer pause_;
  asio::steady_timer stop_timer_;
  FairPool reads_;
  FairPool writes_;
  FairPool checks_;
  FairPool pages_;
  FairPool pieces_;  ///< for bodies sent in pieces: among the pages, each piece would wait for a page of every client
  HeldBytes<Session> held_;
  Watchers watchers_;
  DateHeader date_;
  std::unordered_map<std::string, Sessions> sessions_;  ///< by client, least recently served first
  std::atomic<std::size_t> session_count_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::optional<std::chrono::steady_clock::time_point> complained_;  ///< when a failure to accept was last logged; at
                                                                     ///< most once a minute
  bool stopping_ = false;
  Mutex arriving_;
  std::deque<Arrived> arrived_ PLAYFS_GUARDED_BY(arriving_);
  bool giving_out_ PLAYFS_GUARDED_BY(arriving_) = false;  ///< the I/O thread will look at them
  std::atomic<bool> giving_up_ = false;                   ///< no waiting request is started any more
  std::thread thread_;
  std::once_flag stopped_;
};

/// One connection. The operation it waits for keeps it alive.
class Server::Core::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Core> core, tcp::socket socket, std::string peer)
      : core_(std::move(core)),
        descriptor_(socket.native_handle()),
        stream_(std::move(socket)),
        peer_(std::move(peer)),
        client_(service::counted_address(peer_)),
        place_(core_->add(this, client_)) {}
  ~Session() {
    if (live_) core_->watchers_.leave(asker_);
    core_->held_.release(this);
    core_->forget(place_, client_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void wait_for_request();
  /// Closes it if it waits for a request, or only listens.
  void close_if_unoccupied();
  void close();
  /// Ends it, and tells the watcher when to come back.
  void say_goodbye();
  /// Goes on with a text that `live_` gave.
  void send_live(const LiveBody::Text& text);
  /// Whether it can be closed to make room: it is neither being served, nor a watcher, nor closed already (a closed
  /// session takes a while to go away).
  [[nodiscard]] bool can_give_way() const { return !is_being_served_ && !live_ && stream_.socket().is_open(); }
  /// Spares it from being closed as stalled, if its peer has done its part and only the I/O thread has not come round
  /// to it yet. A few times per request: a crowd that is always about to go on would keep others out.
  [[nodiscard]] bool try_to_spare();

 private:
  using Parser = bh::request_parser<bh::string_body>;

  void read_header();
  void take_what_came();
  void read_more();
  void after_header();
  void after_bad_header(error_code error);
  void after_bad_bytes(error_code error);
  void offer_to_continue();
  void read_body();
  void after_body(error_code error);
  /// The memory that the request takes so far, in bytes.
  [[nodiscard]] std::size_t size_of_request() const;
  void serve(HttpRequest request);
  /// Calls the handler, on this thread.
  static void answer(std::shared_ptr<Session> self, const HttpRequest& request);
  /// Whether the client still waits for the answer to what it requested then. Callable on any thread.
  [[nodiscard]] bool is_wanted(std::chrono::steady_clock::time_point requested) const;
  void respond(Answer answer);
  void respond_busy(std::string message);
  /// Starts sending an answer; `body_` and `source_` follow its head.
  template <class Done>
  void write(const HttpResponse& answer, Framing framing, Done done);
  template <class Done>
  void write_rest(Done done);
  /// Sends what follows on what was sent before.
  void send_body(std::string body);
  void after_write(error_code error);
  void read_piece();
  void after_piece(Result<std::string> piece);
  /// The same for a body of unknown size.
  void after_piece_of_unknown(std::string piece);
  /// Takes over an answer without an end; false if there is no place for another.
  bool begin_to_watch(std::unique_ptr<LiveBody> live);
  /// After its beginning, or the rest of a text, was sent.
  void go_on_watching();
  /// Sets the bytes it is charged for; false if there is no room.
  bool hold(std::size_t bytes);
  /// Answers a request that cannot be read to its end, and closes.
  void refuse(HttpResponse answer);
  void refuse(int status, std::string code, std::string message);
  /// Reads on for a while before closing: closing a socket with unread data would discard the answer.
  void drain();
  void hang_up();

  std::shared_ptr<Core> core_;
  const int descriptor_;  // of the stream
  beast::tcp_stream stream_;
  const std::string peer_;
  const std::string client_;  // whom it counts against
  const Sessions::iterator place_;
  beast::flat_buffer buffer_{kMostBuffered};
  std::optional<Parser> parser_;
  std::uint64_t head_bytes_ = 0;
  std::uint64_t body_bytes_ = 0;  // as sent, framing included
  std::size_t fields_ = 0;        // of the head
  std::string asker_;             // whom the request counts against
  // The response being sent.
  std::string head_;
  std::string body_;                    // or the piece of it that is being sent
  std::size_t sent_ = 0;                // of head and body
  std::unique_ptr<BodySource> source_;  // the rest of the body
  std::uint64_t left_ = 0;              // bytes still to come from it, if their number is known
  bool chunked_ = false;                // that number is unknown: chunked transfer encoding
  std::unique_ptr<LiveBody> live_;      // what follows, without an end; the connection has a place among the watchers
  bool is_watching_ = false;            // the beginning was sent
  bool last_ = false;                   // close after this response
  int times_spared_ = 0;                // since its request began
  bool is_being_served_ = false;
  bool idle_ = true;
};

}  // namespace playfs::http
