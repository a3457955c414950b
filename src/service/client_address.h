// The address that a request counts under: the client's, seen through trusted proxies. Immutable, thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/http.h"
#include "base/result.h"

namespace playfs::service {

/// The part of an address that is one client's: an IPv4 address, or the /64 of an IPv6 address ("2001:db8::/64"). Text
/// that is not an address is returned unchanged.
std::string counted_address(std::string_view address);

class TrustedProxies {
 public:
  TrustedProxies() = default;
  /// Addresses and networks: "127.0.0.1", "10.0.0.0/8", "::1". Errors: invalid_argument.
  static Result<TrustedProxies> parse(const std::vector<std::string>& networks);

  /// The nearest address that is not a trusted proxy: `peer`, or, if that is one, the first such address from the right
  /// of X-Forwarded-For. Entries further left can be forged by the client.
  [[nodiscard]] std::string client(std::string_view peer, std::string_view forwarded_for) const;
  /// The same for a request received from `peer`.
  [[nodiscard]] std::string client_of(const HttpRequest& request, std::string_view peer) const;
  /// Whether a trusted proxy says that it received the request over https.
  [[nodiscard]] bool is_secure(const HttpRequest& request, std::string_view peer) const;

 private:
  using Bytes = std::array<std::uint8_t, 16>;  // IPv4 in its mapped form
  struct Network {
    Bytes address;
    unsigned prefix;
  };
  [[nodiscard]] bool trusts(std::string_view address) const;
  std::vector<Network> networks_;
};

}  // namespace playfs::service
