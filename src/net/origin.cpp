#include "net/origin.h"

#include <arpa/inet.h>

#include <string>

#include "net/curl_functions.h"

namespace playfs::net {

bool is_loopback(std::string_view origin) {
  auto scheme = origin.find("://");
  if (scheme == std::string_view::npos) return false;
  std::string_view host = origin.substr(scheme + 3);
  if (host == "[::1]" || host.starts_with("[::1]:")) return true;
  host = host.substr(0, host.find(':'));
  // The whole host must be an address: anyone can register 127.0.0.1.example.org.
  in_addr address{};
  return host == "localhost" ||
         (inet_pton(AF_INET, std::string(host).c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

std::optional<WallTime> parse_http_date(std::string_view text) {
  std::time_t seconds = curl_getdate(std::string(text).c_str(), nullptr);
  if (seconds < 0 || seconds > INT64_MAX / 1'000'000'000) return std::nullopt;
  return WallTime{seconds * 1'000'000'000};
}

}  // namespace playfs::net
