// The Model Context Protocol as text: what a line of a client means, and the lines that answer it.
//
// Two eras of the protocol are spoken at once. Up to revision 2025-11-25 a client begins with `initialize`, which
// settles the version for the process. Since 2026-07-28 each request names its version in `_meta`, and nothing is
// remembered. Input is untrusted; memory is bounded by the line. For one thread, but for the functions that make
// replies, which use nothing that changes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/json.h"

namespace playfs::mcp {

/// The longest line that is read, in bytes.
inline constexpr std::size_t kLongestLine = 16 << 20;
/// The longest id of a request. Ids are kept while the request runs.
inline constexpr std::size_t kLongestId = 1024;

// JSON-RPC's error codes, and MCP's.
inline constexpr int kParseError = -32700;
inline constexpr int kInvalidRequest = -32600;
inline constexpr int kMethodNotFound = -32601;
inline constexpr int kInvalidParams = -32602;
inline constexpr int kInternalError = -32603;
inline constexpr int kResourceNotFound = -32002;  ///< until 2025-11-25; since then kInvalidParams
inline constexpr int kUnsupportedVersion = -32022;

enum class Era {
  sessions,   ///< with `initialize`
  stateless,  ///< with a version in each request
};

/// A request that others have to answer: tools/list, tools/call, resources/list, resources/templates/list or
/// resources/read.
struct Request {
  Json id;
  std::string method;
  JsonObject params;
  Era era = Era::sessions;
  std::optional<Json> progress_token;
};

/// What a line asks for.
struct Received {
  std::vector<std::string> replies;  ///< lines to send at once
  std::vector<Request> requests;
  std::vector<Json> cancelled;  ///< ids
};

/// How the server introduces itself.
struct Identity {
  std::string name;
  std::string version;
  std::string instructions;  ///< for the model
};

class Protocol {
 public:
  explicit Protocol(Identity identity) : identity_(std::move(identity)) {}

  Received take(std::string_view line);
  /// The reply to a line that was too long to be read.
  [[nodiscard]] static std::string too_long();

  // Replies: lines without their ends.
  [[nodiscard]] std::string result(const Request& request, JsonObject result) const;
  [[nodiscard]] static std::string error(const Request& request, int code, const std::string& message);
  /// The reply to a request that failed. not_found means that there is no such resource.
  [[nodiscard]] static std::string failure(const Request& request, const Error& error);
  /// `total`: 0 if it is unknown. REQUIRES: the request has a token.
  [[nodiscard]] static std::string progress(const Request& request, double done, double total,
                                            const std::string& message);

 private:
  void take_message(const Json& message, Received& received);
  void take_request(Request request, Received& received);
  void initialize(const Request& request, Received& received);
  /// nullopt: the request is of that era.
  [[nodiscard]] std::optional<std::string> refuse_era(Request& request) const;
  [[nodiscard]] JsonObject server_info() const { return {{"name", identity_.name}, {"version", identity_.version}}; }
  void discover(const Request& request, Received& received) const;

  const Identity identity_;
  std::string version_;  ///< agreed upon by `initialize`; empty: none
};

}  // namespace playfs::mcp
