// Who a request is counted for: the client's address, seen through the proxies that the operator trusts. Immutable,
// thread-safe.
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

/// The part of an address that one client has for itself: an IPv4 address, the /64 of an IPv6 address
/// ("2001:db8::/64"). What is no address stays as it is.
std::string counted_address(std::string_view address);

class TrustedProxies {
 public:
  TrustedProxies() = default;
  /// Addresses and networks: "127.0.0.1", "10.0.0.0/8", "::1". Fails with invalid_argument.
  static Result<TrustedProxies> parse(const std::vector<std::string>& networks);

  /// The address nearest to us that is no trusted proxy: `peer` itself unless it is one, otherwise from the right of
  /// X-Forwarded-For. What stands further left was written by whoever likes to.
  [[nodiscard]] std::string client(std::string_view peer, std::string_view forwarded_for) const;
  /// The same for a request that came from `peer`.
  [[nodiscard]] std::string client_of(const HttpRequest& request, std::string_view peer) const;
  /// Whether a trusted proxy says that the request came to it by https.
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
