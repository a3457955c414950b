#include "runtime/source.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace playfs::runtime {

namespace {

constexpr std::string_view kApiPath = "/.site/data";
constexpr const char* kForms = "https://host, http://host:port, local:NAME or local:/directory";

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

struct Host {
  std::string name;  // lower case; an IPv6 address with its brackets
  std::optional<unsigned> port;
};

Result<Host> parse_host(std::string_view text, std::string_view whole) {
  auto bad = [&](const std::string& why) {
    return fail(ErrorCode::invalid_argument, "'" + std::string(whole) + "' is not a service address: " + why, kForms);
  };
  Host host;
  std::size_t end = 0;
  if (!text.empty() && text.front() == '[') {
    end = text.find(']');
    if (end == std::string_view::npos) return bad("the bracket is not closed");
    ++end;
    for (char c : text.substr(1, end - 2))
      if (!is_alphanumeric(c) && c != ':' && c != '.') return bad("the address in brackets is not valid");
  } else {
    end = std::min(text.find(':'), text.size());
    for (char c : text.substr(0, end))
      if (!is_alphanumeric(c) && c != '-' && c != '.' && c != '_')
        return bad("the host name contains an invalid character");
  }
  host.name = to_lower(text.substr(0, end));
  if (host.name.empty()) return bad("the host is missing");
  if (end < text.size()) {
    std::string_view digits = text.substr(end + 1);
    unsigned port = 0;
    auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (text[end] != ':' || error != std::errc() || stop != digits.data() + digits.size() || port == 0 || port > 65535)
      return bad("the port is not a number from 1 to 65535");
    host.port = port;
  }
  return host;
}

bool is_loopback(std::string_view host) {
  if (host == "localhost" || host == "[::1]") return true;
  // Only a dotted number is a loopback address: 127.example.org is an ordinary name.
  return host.starts_with("127.") && std::count(host.begin(), host.end(), '.') == 3 &&
         std::all_of(host.begin(), host.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

Result<std::string> checked_base_path(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path.empty() || path.front() != '/' || path.find_first_of("?# ") != std::string::npos)
    return fail(ErrorCode::invalid_argument, "base_path '" + path + "' is not an absolute URL path",
                "base_path=/.site/data");
  return path;
}

}  // namespace

bool Source::may_carry_credentials() const {
  if (kind != Kind::http) return false;
  if (origin.starts_with("https://")) return true;
  std::string_view host = std::string_view(origin).substr(std::string_view("http://").size());
  if (auto colon = host.rfind(':'); colon != std::string_view::npos && host.back() != ']') host = host.substr(0, colon);
  return is_loopback(host);
}

Result<Source> parse_source(std::string_view text, std::optional<std::string> base_path, const Places& places,
                            const Io& io) {
  Source source;
  if (base_path) {
    PLAYFS_TRY(source.base_path, checked_base_path(std::move(*base_path)));
  }
  if (text.starts_with("local:")) {
    std::string_view name = text.substr(6);
    if (name.empty()) name = "default";
    source.kind = Source::Kind::embedded;
    if (name.front() == '/' || name == "." || name == ".." || name.starts_with("./") || name.starts_with("../")) {
      source.directory = io.absolute(name);
      source.text = "local:" + source.directory;
    } else if (name.find('/') != std::string_view::npos || name.find('\0') != std::string_view::npos ||
               name.front() == '.') {
      return fail(ErrorCode::invalid_argument,
                  "'" + std::string(text) + "': a local playground's name must not contain '/' or start with a dot",
                  kForms);
    } else {
      source.directory = places.data + "/" + std::string(name);
      source.text = "local:" + std::string(name);
    }
    return source;
  }

  source.kind = Source::Kind::http;
  bool secure = text.starts_with("https://");
  if (!secure && !text.starts_with("http://"))
    return fail(ErrorCode::invalid_argument, "'" + std::string(text) + "' is not a service", kForms);
  std::string_view rest = text.substr(secure ? 8 : 7);
  if (rest.find_first_of("?#") != std::string_view::npos)
    return fail(ErrorCode::invalid_argument, "'" + std::string(text) + "': a service address cannot have a query",
                kForms);
  auto slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash), path = rest.substr(slash);
  // The text before an @ may contain a password, so it is not printed.
  if (authority.find('@') != std::string_view::npos)
    return fail(ErrorCode::invalid_argument,
                "a service address cannot contain a user name or password: other users can read command lines",
                "playfs login");
  PLAYFS_TRY(Host host, parse_host(authority, text));
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  if (!path.empty()) {
    if (!base_path && path.ends_with(kApiPath)) source.base_path = std::string(path);
    else if (path != source.base_path)
      return fail(ErrorCode::invalid_argument,
                  "'" + std::string(text) + "' has a path; a service address is only the host",
                  "base_path=" + std::string(path) + " if the Data API is not at " + std::string(kApiPath));
  }
  source.origin = (secure ? "https://" : "http://") + host.name;
  if (host.port && *host.port != (secure ? 443u : 80u)) source.origin += ":" + std::to_string(*host.port);
  source.text = source.origin;
  return source;
}

bool is_source(std::string_view text) {
  return text.starts_with("local:") || text.starts_with("https://") || text.starts_with("http://");
}

}  // namespace playfs::runtime
