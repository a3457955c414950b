// Which hosts a site answers for: the checks against cross-site posting, cross-site reading and DNS rebinding.
// Immutable, thread-safe.
//
// A page of a stranger's site can make a visitor's browser send requests here. Its Origin header then names that
// site; and where the stranger lets his own name resolve to our address, so does Host. So Host must be a name that
// is configured or that nobody can point at us (an address, localhost), and a POST's Origin must be this very host.
// What is served under a name that only this machine or its network has is nothing for pages of other sites.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace playfs::service {

/// A host as it stands in a URL or a Host header.
struct Host {
  std::string name;  ///< lower case; an IPv6 address with its brackets
  std::string port;  ///< digits; empty: not named
  bool is_address = false;
  bool is_loopback = false;  ///< by its address, or "localhost" and what is below it
};

/// "example.org", "127.0.0.1:8787", "[::1]:8787". nullopt for anything else, also where only a part of it is a host.
std::optional<Host> parse_host(std::string_view text);

class Site {
 public:
  /// `hosts` as in a URL, "example.org" or "example.org:8443"; without a port: on any port. What is no host is ignored.
  explicit Site(const std::vector<std::string>& hosts);

  /// Whether a request with this Host header is for us.
  [[nodiscard]] bool answers_for(std::string_view host) const;

  /// Whether `origin` ("https://example.org") names this site, for a request with that Host header. A request that came
  /// by https comes from no page that came by http: such a page may be anybody's on the way.
  [[nodiscard]] bool is_own_origin(std::string_view origin, std::string_view host, bool is_secure) const;

  /// Whether everybody knows the site by this Host header: pages of other sites may read it then.
  [[nodiscard]] bool is_public(std::string_view host) const;

 private:
  [[nodiscard]] bool is_configured(const Host& host) const;
  std::vector<Host> hosts_;
};

}  // namespace playfs::service
