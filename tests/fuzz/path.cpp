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
  std::string_view component;
  for (std::size_t begin = 0; begin <= path->text().size(); begin += component.size() + 1) {
    component = std::string_view(path->text()).substr(begin);
    component = component.substr(0, component.find('/'));
    FUZZ_CHECK(!why_not_a_component(component) && !is_git_alias(component));
    FUZZ_CHECK(!component.empty() && component != "." && component != "..");
    FUZZ_CHECK(component.size() <= kMaxComponentLength);
  }
  FUZZ_CHECK(component == path->name());
  return 0;
}
