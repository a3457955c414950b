// Which hosts a site answers for: the checks against cross-site posting and DNS rebinding. Immutable, thread-safe.
//
// A page of a stranger's site can make a visitor's browser send requests here. Its Origin header then names that
// site; and where the stranger lets his own name resolve to our address, so does Host. So Host must be a name that
// is configured or that nobody can point at us (an address, localhost), and a POST's Origin must be this very host.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace playfs::service {

class Site {
 public:
  /// `hosts` as in a URL, "example.org" or "example.org:8443"; without a port: on any port.
  explicit Site(std::vector<std::string> hosts);

  /// Whether a request with this Host header is for us.
  [[nodiscard]] bool answers_for(std::string_view host) const;

  /// Whether `origin` ("https://example.org") names this site, for a request with that Host header.
  [[nodiscard]] bool is_own_origin(std::string_view origin, std::string_view host) const;

 private:
  [[nodiscard]] bool is_configured(std::string_view host) const;
  std::vector<std::string> hosts_;  // lower case
};

}  // namespace playfs::service
