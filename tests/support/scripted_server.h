// A server that does what a test's script says, byte by byte: for clients that must survive servers which hang, stop
// in the middle, drip, lie about lengths or speak no HTTP.
//
// It listens on a free port of 127.0.0.1 and runs the script once for each connection, on a thread of its own. The
// destructor ends every connection and waits for the scripts. Thread-safe; what a script shares with the test is the
// test's to guard.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/http.h"

struct ssl_st;
struct ssl_ctx_st;

namespace playfs::test {

/// A certificate for 127.0.0.1 that is its own authority, made on the spot.
struct TlsIdentity {
  TlsIdentity();
  std::string certificate;  ///< PEM; also what a client needs as its authority
  std::string key;          ///< PEM
};

struct TlsOptions {
  const TlsIdentity* identity = nullptr;  ///< nullptr: plain HTTP. REQUIRES: outlives the server
  bool only_tls_1_1 = false;
};

class ScriptedServer {
 public:
  class Connection {
   public:
    /// The next request with its body; nullopt when the peer has closed or sent no HTTP.
    std::optional<HttpRequest> read_request();
    /// Sends bytes as they are; false when the peer is gone.
    bool send(std::string_view bytes);
    /// Sends an answer with a right Content-Length.
    bool answer(int status, std::string_view body, const HttpHeaders& headers = {});
    /// Waits until the peer closes or the server ends.
    void hang();
    /// When the script returns, the peer gets a reset instead of an end of the stream.
    void reset_at_end();

    ~Connection();

   private:
    friend class ScriptedServer;
    explicit Connection(UniqueFd fd) : fd_(std::move(fd)) {}
    bool start_tls(ssl_ctx_st* context);
    long receive(char* buffer, std::size_t size);
    UniqueFd fd_;
    ssl_st* ssl_ = nullptr;
    std::string unread_;
  };
  using Script = std::function<void(Connection&)>;

  explicit ScriptedServer(Script script, TlsOptions tls = {});
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  /// "http://127.0.0.1:PORT", or https.
  [[nodiscard]] const std::string& url() const { return url_; }
  /// How many connections were accepted so far.
  [[nodiscard]] int connections() const { return connections_.load(); }

 private:
  void accept_all();

  Script script_;
  ssl_ctx_st* tls_ = nullptr;
  UniqueFd listener_;
  std::string url_;
  std::atomic<int> connections_ = 0;
  std::mutex mutex_;  // guards open_, threads_ and stopping_
  std::vector<Connection*> open_;
  std::vector<std::thread> threads_;
  bool stopping_ = false;
  std::thread acceptor_;
};

}  // namespace playfs::test
