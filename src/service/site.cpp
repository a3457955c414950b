#include "service/site.h"

#include <algorithm>

#include "base/text.h"

namespace playfs::service {

namespace {

/// The name of "name", "name:port", "[v6]" or "[v6]:port".
std::string_view name_of_host(std::string_view host) {
  if (!host.empty() && host.front() == '[') {
    auto end = host.find(']');
    return end == std::string_view::npos ? std::string_view() : host.substr(0, end + 1);
  }
  return host.substr(0, host.find(':'));
}

/// An address cannot be made to resolve to something else, and localhost always is this machine.
bool cannot_be_rebound(std::string_view name) {
  if (name.empty()) return false;
  if (name.front() == '[') return true;
  if (name == "localhost" || name.ends_with(".localhost")) return true;
  return std::all_of(name.begin(), name.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

/// Host and port of an origin, lower case, without the port that its scheme implies anyway.
std::optional<std::string> host_of_origin(std::string_view origin) {
  auto scheme_end = origin.find("://");
  if (scheme_end == std::string_view::npos || scheme_end == 0) return std::nullopt;
  std::string scheme = to_lower(origin.substr(0, scheme_end));
  std::string host = to_lower(origin.substr(scheme_end + 3));
  if (host.empty() || host.find_first_of("/?#@ ") != std::string::npos) return std::nullopt;
  for (auto [implying, port] : {std::pair{"http", ":80"}, std::pair{"https", ":443"}})
    if (scheme == implying && host.ends_with(port)) host.resize(host.size() - std::string_view(port).size());
  return host;
}

/// A Host header carries no scheme, so either implied port may stand in it.
std::string without_implied_port(std::string host) {
  for (std::string_view port : {":80", ":443"})
    if (host.ends_with(port)) return host.substr(0, host.size() - port.size());
  return host;
}

}  // namespace

Site::Site(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {
  for (auto& host : hosts_) host = to_lower(host);
}

bool Site::is_configured(std::string_view host) const {
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const std::string& known) {
    return known == host || (known.size() == name_of_host(known).size() && known == name_of_host(host));
  });
}

bool Site::answers_for(std::string_view host) const {
  std::string lower = to_lower(host);
  return is_configured(lower) || cannot_be_rebound(name_of_host(lower));
}

bool Site::is_own_origin(std::string_view origin, std::string_view host) const {
  auto origin_host = host_of_origin(origin);
  if (!origin_host) return false;
  return is_configured(*origin_host) || without_implied_port(*origin_host) == without_implied_port(to_lower(host));
}

}  // namespace playfs::service
