#include "service/client_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace playfs::service {

namespace {

using Bytes = std::array<std::uint8_t, 16>;

constexpr unsigned kMappedPrefix = 96;

bool is_mapped_v4(const Bytes& bytes) {
  return std::all_of(bytes.begin(), bytes.begin() + 10, [](auto b) { return b == 0; }) && bytes[10] == 0xff &&
         bytes[11] == 0xff;
}

std::optional<Bytes> parse_address(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  std::string terminated(text);
  Bytes bytes{};
  if (inet_pton(AF_INET6, terminated.c_str(), bytes.data()) == 1) return bytes;
  bytes[10] = bytes[11] = 0xff;
  if (inet_pton(AF_INET, terminated.c_str(), bytes.data() + 12) == 1) return bytes;
  return std::nullopt;
}

}  // namespace

std::string counted_address(std::string_view address) {
  auto bytes = parse_address(address);
  if (!bytes) return std::string(address);
  char text[INET6_ADDRSTRLEN] = {};
  if (is_mapped_v4(*bytes)) {
    inet_ntop(AF_INET, bytes->data() + 12, text, sizeof text);
    return text;
  }
  std::fill(bytes->begin() + 8, bytes->end(), std::uint8_t{0});
  inet_ntop(AF_INET6, bytes->data(), text, sizeof text);
  return std::string(text) + "/64";
}

Result<TrustedProxies> TrustedProxies::parse(const std::vector<std::string>& networks) {
  TrustedProxies proxies;
  for (const std::string& text : networks) {
    std::string_view rest = text;
    auto slash = rest.find('/');
    auto address = parse_address(rest.substr(0, slash));
    if (!address) return fail(ErrorCode::invalid_argument, "not an address or network: " + text);
    unsigned longest = is_mapped_v4(*address) ? 32 : 128;
    unsigned prefix = longest;
    if (slash != std::string_view::npos) {
      rest.remove_prefix(slash + 1);
      auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), prefix);
      if (error != std::errc() || stop != rest.data() + rest.size() || prefix > longest)
        return fail(ErrorCode::invalid_argument, "not a network: " + text);
    }
    proxies.networks_.push_back({*address, longest == 32 ? kMappedPrefix + prefix : prefix});
  }
  return proxies;
}

bool TrustedProxies::trusts(std::string_view text) const {
  auto address = parse_address(text);
  if (!address) return false;
  return std::any_of(networks_.begin(), networks_.end(), [&](const Network& network) {
    for (unsigned bit = 0; bit < network.prefix; ++bit) {
      std::uint8_t mask = static_cast<std::uint8_t>(0x80 >> bit % 8);
      if (((*address)[bit / 8] ^ network.address[bit / 8]) & mask) return false;
    }
    return true;
  });
}

std::string TrustedProxies::client(std::string_view peer, std::string_view forwarded_for) const {
  std::string_view nearest = peer;
  while (trusts(nearest) && !forwarded_for.empty()) {
    auto comma = forwarded_for.rfind(',');
    std::string_view last = trim(comma == std::string_view::npos ? forwarded_for : forwarded_for.substr(comma + 1));
    if (!parse_address(last)) break;
    nearest = last;
    forwarded_for = comma == std::string_view::npos ? std::string_view() : forwarded_for.substr(0, comma);
  }
  return std::string(nearest);
}

std::string TrustedProxies::client_of(const HttpRequest& request, std::string_view peer) const {
  // A proxy may append a header line of its own below the client's.
  std::string forwarded_for;
  for (const auto& [name, value] : request.headers)
    if (equals_ignoring_case(name, "X-Forwarded-For")) forwarded_for += (forwarded_for.empty() ? "" : ",") + value;
  return client(peer, forwarded_for);
}

bool TrustedProxies::is_secure(const HttpRequest& request, std::string_view peer) const {
  return trusts(peer) && equals_ignoring_case(request.headers.get("X-Forwarded-Proto").value_or(""), "https");
}

}  // namespace playfs::service
