// JSON text: whatever is read has the predicted size when written, and reads back the same.
#include "wire/json.h"

#include "fuzz.h"

using namespace playfs;

static void check_value(const Json& json, const wire::JsonLimits& limits) {
  std::string text = wire::to_text(json);
  FUZZ_CHECK(text.size() == json_size(json));
  auto back = wire::parse_json(text, limits);
  FUZZ_CHECK(back && *back == json);
  auto pretty = wire::parse_json(wire::to_pretty_text(json), limits);
  FUZZ_CHECK(pretty && *pretty == json);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const wire::JsonLimits limits;
  auto strict = wire::parse_json(as_text(data, size), limits);
  if (strict) check_value(*strict, limits);
  auto lenient = wire::parse_answer(as_text(data, size), limits);
  FUZZ_CHECK(!strict || (lenient && *lenient == *strict));
  if (lenient) check_value(*lenient, limits);
  return 0;
}
