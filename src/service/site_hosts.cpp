#include "service/site_hosts.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/text.h"

namespace playfs::service {

namespace {

constexpr std::size_t kLongestName = 253;
/// Accepted schemes of an origin and their default ports. `local` is the embedded playground's; no browser sends it.
constexpr std::string_view kImpliedPort[][2] = {{"http", "80"}, {"https", "443"}, {"local", ""}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_port(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit) &&
         (text.size() < 5 || (text.size() == 5 && text <= "65535"));
}

/// The characters of a DNS name, in lower case.
bool is_dns_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && std::all_of(name.begin(), name.end(), [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == '_';
  });
}

struct Origin {
  std::string scheme;
  Host host;
};

/// "https://example.org:8443" with nothing after it.
std::optional<Origin> parse_origin(std::string_view text) {
  auto scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) return std::nullopt;
  std::string scheme = to_lower(text.substr(0, scheme_end));
  auto host = parse_host(text.substr(scheme_end + 3));
  if (!host) return std::nullopt;
  for (auto [known, port] : kImpliedPort) {
    if (scheme != known) continue;
    if (host->port == port) host->port.clear();
    return Origin{std::move(scheme), *std::move(host)};
  }
  return std::nullopt;
}

/// A Host header carries no scheme, so it may spell out either default port.
bool is_same(const Host& of_origin, const Host& of_request) {
  if (of_origin.name != of_request.name) return false;
  if (of_origin.port == of_request.port) return true;
  return of_origin.port.empty() && std::any_of(std::begin(kImpliedPort), std::end(kImpliedPort),
                                               [&](const auto& implied) { return implied[1] == of_request.port; });
}

}  // namespace

std::optional<Host> parse_host(std::string_view text) {
  const std::string lower = to_lower(text);
  const bool has_brackets = lower.starts_with('[');
  const auto end = lower.find(has_brackets ? ']' : ':');
  Host host;
  host.name = lower.substr(0, has_brackets && end != std::string::npos ? end + 1 : end);
  if (const std::string_view rest = std::string_view(lower).substr(host.name.size()); !rest.empty()) {
    if (rest.front() != ':' || !is_port(rest.substr(1))) return std::nullopt;
    host.port = rest.substr(1);
  }
  if (has_brackets) {
    in6_addr address{};
    const std::string inner = host.name.substr(1, host.name.size() - 2);
    const bool is_whole = host.name.ends_with(']') && inner.find('\0') == std::string::npos;
    if (!is_whole || inet_pton(AF_INET6, inner.c_str(), &address) != 1) return std::nullopt;
    host.is_address = true;
    host.is_loopback = IN6_IS_ADDR_LOOPBACK(&address);
    return host;
  }
  if (!is_dns_name(host.name)) return std::nullopt;
  in_addr address{};
  host.is_address = inet_pton(AF_INET, host.name.c_str(), &address) == 1;
  host.is_loopback =
      host.is_address ? host.name.starts_with("127.") : host.name == "localhost" || host.name.ends_with(".localhost");
  return host;
}

SiteHosts::SiteHosts(const std::vector<std::string>& hosts) {
  for (const auto& host : hosts)
    if (auto parsed = parse_host(host)) hosts_.push_back(*std::move(parsed));
}

bool SiteHosts::is_configured(const Host& host) const {
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const Host& known) {
    return known.name == host.name && (known.port.empty() || known.port == host.port);
  });
}

bool SiteHosts::answers_for(std::string_view host) const {
  auto parsed = parse_host(host);
  return parsed && (is_configured(*parsed) || parsed->is_address || parsed->is_loopback);
}

bool SiteHosts::is_own_origin(std::string_view origin, std::string_view host, bool is_secure) const {
  auto from = parse_origin(origin);
  auto here = parse_host(host);
  if (!from || !here || (is_secure && from->scheme != "https")) return false;
  return is_configured(from->host) || is_same(from->host, *here);
}

bool SiteHosts::is_public(std::string_view host) const {
  auto parsed = parse_host(host);
  return parsed && is_configured(*parsed) && !parsed->is_loopback;
}

}  // namespace playfs::service
