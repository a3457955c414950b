// Paths: whatever is accepted consists of safe components only.
#include "model/path.h"

#include "base/text.h"
#include "fuzz.h"
#include "model/repository.h"

using namespace playfs;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string why;
  auto path = TreePath::parse(as_text(data, size), &why);
  FUZZ_CHECK(path.has_value() == why.empty());
  if (!path) return 0;
  FUZZ_CHECK(path->text() == as_text(data, size));
  FUZZ_CHECK(size <= kMaxPathLength && is_valid_utf8(path->text()) && path->text().find('\0') == std::string::npos);
  std::string joined;
  for (auto component : path->components()) {
    FUZZ_CHECK(!why_not_a_component(component) && !is_git_alias(component));
    FUZZ_CHECK(!component.empty() && component != "." && component != "..");
    FUZZ_CHECK(component.size() <= kMaxComponentLength && component.find('/') == std::string_view::npos);
    joined += (joined.empty() ? "" : "/") + std::string(component);
  }
  FUZZ_CHECK(joined == path->text() && path->components().back() == path->name());
  return 0;
}
