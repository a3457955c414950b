#include "service/postgres_uri.h"

#include <algorithm>

namespace playfs::service {

bool is_postgres_uri(std::string_view text) {
  return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

std::string without_password(const std::string& uri) {
  const auto scheme = uri.find("://");
  const auto begin = scheme == std::string::npos ? 0 : scheme + 3;
  const std::string_view authority = std::string_view(uri).substr(begin, uri.find_first_of("/?", begin) - begin);
  std::string shown = uri;
  if (const auto at = authority.rfind('@'); at != std::string_view::npos)
    if (const auto colon = authority.find(':'); colon < at) shown.erase(begin + colon, at - colon);
  for (auto found = shown.find("password="); found != std::string::npos; found = shown.find("password=", found))
    shown.erase(found, std::min(shown.find('&', found), shown.size()) - found);  // sslpassword too
  return shown;
}

}  // namespace playfs::service
