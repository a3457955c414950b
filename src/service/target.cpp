#include "service/target.h"

#include "base/text.h"

namespace playfs::service {

std::optional<std::string_view> Target::parameter(std::string_view name) const {
  for (const auto& [key, value] : query)
    if (key == name) return value;
  return std::nullopt;
}

Result<Target> parse_target(std::string_view target) {
  Target parsed;
  auto question = target.find('?');
  parsed.path = target.substr(0, question);
  std::string_view rest = question == std::string_view::npos ? std::string_view() : target.substr(question + 1);
  while (!rest.empty()) {
    auto end = rest.find('&');
    std::string_view pair = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (pair.empty()) continue;
    auto equals = pair.find('=');
    auto name = percent_decode(pair.substr(0, equals));
    auto value = percent_decode(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1));
    if (!name || !value) return fail(ErrorCode::invalid_argument, "the query is not properly percent-encoded");
    parsed.query.emplace_back(*std::move(name), *std::move(value));
  }
  return parsed;
}

std::optional<std::vector<std::string>> segments_below(std::string_view base, std::string_view path) {
  if (path.substr(0, base.size()) != base) return std::nullopt;
  path.remove_prefix(base.size());
  if (!path.empty() && path.front() != '/') return std::nullopt;
  std::vector<std::string> segments;
  while (!path.empty()) {
    path.remove_prefix(1);
    if (path.empty()) break;
    auto end = path.find('/');
    auto segment = percent_decode(path.substr(0, end));
    if (!segment) return std::nullopt;
    segments.push_back(*std::move(segment));
    path = end == std::string_view::npos ? std::string_view() : path.substr(end);
  }
  return segments;
}

}  // namespace playfs::service
