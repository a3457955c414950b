// Which hosts a site answers for: the checks against cross-site posting, cross-site reading and DNS rebinding.
// Immutable, thread-safe.
//
// A page of a stranger's site can make a visitor's browser send requests here. Their Origin header names that site; and
// if the stranger's DNS points at our address, so does their Host. Therefore Host must be a configured name or one that
// nobody else can point at us (an address, localhost), and a POST's Origin must be that same host. A site reached by a
// name that only this machine or its network knows, configured or not, is not readable by other sites' pages: a
// visitor's browser would read it for a stranger who cannot.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace playfs::service {

/// A host as written in a URL or a Host header.
struct Host {
  std::string name;  ///< lower case; an IPv6 address with its brackets
  std::string port;  ///< digits; empty if not given
  bool is_address = false;
  bool is_loopback = false;  ///< a loopback address, or "localhost" or a name below it
};

/// Whether it is a host of the internet: no address and no name of this machine or of a local network.
bool is_public(const Host& host);

/// "example.org", "127.0.0.1:8787", "[::1]:8787". nullopt for anything else, also if it only begins with a host.
std::optional<Host> parse_host(std::string_view text);

class SiteHosts {
 public:
  /// `hosts` as in a URL: "example.org" or "example.org:8443"; without a port, any matches. Invalid ones are ignored.
  explicit SiteHosts(const std::vector<std::string>& hosts);

  /// Whether a request with this Host header is for us.
  [[nodiscard]] bool answers_for(std::string_view host) const;

  /// Whether `origin` ("https://example.org") names this site, for a request with that Host header. A request received
  /// over https is never from an http page of ours: such a page can be altered on its way.
  [[nodiscard]] bool is_own_origin(std::string_view origin, std::string_view host, bool is_secure) const;

  /// Whether this Host header is a configured name or address of the internet, so that pages of other sites may read
  /// it.
  [[nodiscard]] bool is_public(std::string_view host) const;

 private:
  [[nodiscard]] bool is_configured(const Host& host) const;
  std::vector<Host> hosts_;
};

}  // namespace playfs::service
