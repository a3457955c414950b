#include "service/site_hosts.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

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

struct Block {
  std::uint32_t address;
  int bits;
};
/// IPv4 addresses that only a machine or a network of one's own reaches (RFC 6890), and multicast.
constexpr Block kLocalBlocks[] = {{0x00000000, 8},  {0x0a000000, 8},  {0x64400000, 10}, {0x7f000000, 8},
                                  {0xa9fe0000, 16}, {0xac100000, 12}, {0xc0000000, 24}, {0xc0a80000, 16},
                                  {0xc6120000, 15}, {0xe0000000, 3}};

/// Endings of names that no public DNS knows: reserved ones (RFC 2606, 6761, 6762, 7686, 8375, 9476), those that
/// routers, companies and clusters use, and those under which every address has a name.
constexpr std::string_view kLocalEndings[] = {
    "local",    "localhost", "localdomain", "lan",       "home.arpa", "internal", "intranet", "private",
    "home",     "corp",      "mail",        "workgroup", "test",      "invalid",  "onion",    "alt",
    "localnet", "svc",       "fritz.box",   "ts.net",    "nip.io",    "sslip.io",
};

bool is_public_ipv4(std::uint32_t address) {
  return std::none_of(std::begin(kLocalBlocks), std::end(kLocalBlocks),
                      [&](const Block& block) { return (address ^ block.address) >> (32 - block.bits) == 0; });
}

bool is_public_address(const std::string& name) {
  in_addr address{};
  if (inet_pton(AF_INET, name.c_str(), &address) == 1) return is_public_ipv4(ntohl(address.s_addr));
  in6_addr long_address{};
  if (inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), &long_address) != 1) return false;
  if (IN6_IS_ADDR_V4MAPPED(&long_address)) {
    std::uint32_t inner = 0;
    std::memcpy(&inner, &long_address.s6_addr[12], sizeof inner);
    return is_public_ipv4(ntohl(inner));
  }
  std::uint32_t first = 0, inner = 0;
  std::memcpy(&first, &long_address.s6_addr[0], sizeof first);
  std::memcpy(&inner, &long_address.s6_addr[2], sizeof inner);
  first = ntohl(first);
  if (first >> 16 == 0x2002) return is_public_ipv4(ntohl(inner));  // 6to4
  if (first >> 9 == 0x20010000 >> 9) return false;                 // 2001::/23 for protocols: tunnels of any address
  return first >> 29 == 1;                                         // 2000::/3, all that is given out for the internet
}

bool is_public_name(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  const auto last_dot = name.rfind('.');
  if (last_dot == std::string_view::npos) return false;
  // "10.1" and "10.0x1" are addresses to some programs, and no ending begins with a digit.
  if (const std::string_view ending = name.substr(last_dot + 1); ending.empty() || is_digit(ending.front()))
    return false;
  return std::none_of(std::begin(kLocalEndings), std::end(kLocalEndings), [&](std::string_view ending) {
    return name == ending || (name.ends_with(ending) && name[name.size() - ending.size() - 1] == '.');
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
  for (const auto& [known, port] : kImpliedPort) {
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

bool is_public(const Host& host) { return host.is_address ? is_public_address(host.name) : is_public_name(host.name); }

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
  return parsed && is_configured(*parsed) && service::is_public(*parsed);
}

}  // namespace playfs::service
