// Request targets: two fields, the base path and the target. A decoded target means the same when it is encoded again.
#include "service/target.h"

#include "base/text.h"
#include "fuzz.h"

using namespace playfs;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::string_view base = input.field(), text = input.rest();
  auto target = service::parse_target(text);
  FUZZ_CHECK(target || target.error().code == ErrorCode::invalid_argument);
  if (!target) return 0;
  FUZZ_CHECK(text.starts_with(target->path) && target->path.find('?') == std::string_view::npos);
  std::string printed(target->path);
  for (const auto& pair : target->query) {
    printed += printed.size() == target->path.size() ? '?' : '&';
    printed += percent_encode(pair.first) + '=' + percent_encode(pair.second);
    auto is_named_so = [&](const auto& each) { return each.first == pair.first; };
    auto first = std::find_if(target->query.begin(), target->query.end(), is_named_so);
    FUZZ_CHECK(target->parameter(pair.first) == first->second);
  }
  auto again = service::parse_target(printed);
  FUZZ_CHECK(again && again->path == target->path && again->query == target->query);

  auto segments = service::segments_below(base, target->path);
  if (!segments) return 0;
  FUZZ_CHECK(target->path.starts_with(base));
  std::string path(base);
  for (const auto& segment : *segments) path += '/' + percent_encode(segment);
  // An empty last segment looks like a trailing slash.
  if (!segments->empty() && segments->back().empty()) path += '/';
  FUZZ_CHECK(service::segments_below(base, path) == segments);
  return 0;
}
