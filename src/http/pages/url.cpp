#include "http/pages/url.h"

#include <algorithm>

#include "base/text.h"

namespace playfs::http {

namespace {

constexpr std::size_t kLongestExternal = 2000;

/// The characters of RFC 3986 without the single quote. No space, control character or non-ASCII: a name that only
/// looks like another one stays text.
bool may_stand_in_address(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~:/?#[]@!$&()*+,;=%").find(c) != std::string_view::npos;
}

constexpr std::size_t kLongestSegment = 255;
constexpr std::string_view kSections[] = {"projects", "threads", "agents", "mail", "spaces", "records"};

}  // namespace

bool may_be_segment(std::string_view text) {
  return !text.empty() && text.size() <= kLongestSegment && text != "." && text != "..";
}

Url Url::operator/(std::string_view segment) const {
  return Url(text_ + (text_.ends_with('/') ? "" : "/") + percent_encode(segment));
}

Url Url::below(std::string_view path) const {
  Url url = *this;
  while (!path.empty()) {
    auto end = path.find('/');
    url = url / path.substr(0, end);
    path = end == std::string_view::npos ? std::string_view() : path.substr(end + 1);
  }
  return url;
}

Url Url::with(std::string_view parameter, std::string_view value) const {
  return Url(text_ + (text_.find('?') == std::string::npos ? '?' : '&') + percent_encode(parameter) + '=' +
             percent_encode(value));
}

Url Url::at(std::string_view fragment) const { return Url(text_ + '#' + percent_encode(fragment)); }

std::optional<Url> Url::internal(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  if (path.size() > kLongestExternal ||
      std::find(std::begin(kSections), std::end(kSections), path.substr(0, path.find('/'))) == std::end(kSections))
    return std::nullopt;
  Url url;
  for (std::string_view rest = path; !rest.empty();) {
    std::string_view segment = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(segment.size() + 1, rest.size()));
    if (!may_be_segment(segment)) return std::nullopt;
    url = url / segment;
  }
  // A section by itself is more likely a word.
  if (path.find('/') == std::string_view::npos) return std::nullopt;
  return url;
}

std::optional<Url> Url::external(std::string_view address) {
  std::string scheme = to_lower(address.substr(0, address.find(':')));
  if (scheme != "http" && scheme != "https") return std::nullopt;
  std::string_view rest = address.substr(scheme.size());
  if (!rest.starts_with("://") || rest.size() == 3 || address.size() > kLongestExternal) return std::nullopt;
  if (!std::all_of(address.begin(), address.end(), may_stand_in_address)) return std::nullopt;
  // No user names: people would take "https://bank.example@evil.example" for bank.example.
  std::string_view authority = rest.substr(3, rest.find_first_of("/?#", 3) - 3);
  if (authority.empty() || authority.find('@') != std::string_view::npos) return std::nullopt;
  return Url(std::string(address));
}

}  // namespace playfs::http
