// Server-Sent Events: the same events wherever the pieces end, none too large, and changes that name a record. The
// first byte is the length of the pieces.
#include <string>
#include <vector>

#include "fuzz.h"
#include "model/ids.h"
#include "wire/server_events.h"

using namespace playfs;

namespace {

std::vector<std::string> events_of(std::string_view text, std::size_t step) {
  wire::ServerEvents parser;
  std::vector<std::string> events;
  for (; !text.empty(); text.remove_prefix(std::min(step, text.size())))
    parser.feed(text.substr(0, step), [&](const wire::ServerEvent& event) {
      FUZZ_CHECK(!event.name.empty() && event.name.size() <= wire::ServerEvents::kLongestLine);
      FUZZ_CHECK(event.data.size() <= wire::ServerEvents::kLargestEvent);
      FUZZ_CHECK(event.id.size() <= wire::ServerEvents::kLongestLine && event.id.find('\0') == std::string::npos);
      if (auto change = wire::decode_change(event.data)) {
        FUZZ_CHECK(!change->collection.empty() && !change->id.empty());
        FUZZ_CHECK(change->id.size() <= kMaxIdLength && change->belongs_to.size() <= kMaxIdLength);
      }
      events.push_back(event.name + '\n' + event.data + '\n' + event.id);
    });
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text = as_text(data + 1, size - 1);
  FUZZ_CHECK(events_of(text, 1 + data[0] % 64) == events_of(text, text.size()));
  return 0;
}
