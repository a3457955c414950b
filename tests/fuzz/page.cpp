// Pages of a list: every record has a usable id, whatever else the page contains.
#include "fuzz.h"
#include "wire/json.h"
#include "wire/records.h"

using namespace playfs;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto json = wire::parse_answer(as_text(data, size));
  if (!json) return 0;
  auto page = wire::decode_page(*json);
  if (!page) return 0;
  FUZZ_CHECK(page->records.size() + page->unreadable == json->object()->find("records")->array()->size());
  for (const auto& record : page->records) FUZZ_CHECK(!record.id.empty() && record.id.size() <= kMaxIdLength);
  return 0;
}
