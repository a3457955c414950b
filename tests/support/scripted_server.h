// A server that follows a test's script, byte by byte: for clients that must survive servers which hang, stop midway,
// drip, lie about lengths or do not speak HTTP.
//
// Listens on a free port of 127.0.0.1 and runs the script once per connection, each on its own thread. The destructor
// ends all connections and waits for the scripts. Thread-safe; the test must guard what its script shares with it.
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

/// A self-signed certificate for 127.0.0.1, made on the spot.
struct TlsIdentity {
  TlsIdentity();
  std::string certificate;  ///< PEM; also the client's CA file
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
    /// The next request with its body; nullopt if the peer has closed or does not speak HTTP.
    std::optional<HttpRequest> read_request();
    /// Sends bytes verbatim; false if the peer is gone.
    bool send(std::string_view bytes);
    /// Sends an answer with a correct Content-Length.
    bool answer(int status, std::string_view body, const HttpHeaders& headers = {});
    /// Waits until the peer closes or the server ends.
    void hang();
    /// The peer gets a reset instead of an end of stream when the script returns.
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
  /// Connections accepted so far.
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
