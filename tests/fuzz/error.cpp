// Error responses: printable messages, bounded waits. The first two bytes are the status.
#include <algorithm>

#include "base/text.h"
#include "fuzz.h"
#include "wire/records.h"

using namespace playfs;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  int status = 100 + (data[0] << 8 | data[1]) % 500;
  std::string_view body = as_text(data + 2, size - 2);
  for (auto header : {std::optional<std::string_view>(), std::optional(body)}) {
    Error error = wire::decode_error(status, body, header);
    FUZZ_CHECK(error.http_status == status && !error.message.empty());
    for (const auto& text : {error.message, error.hint, error.remote_code}) {
      FUZZ_CHECK(is_valid_utf8(text) && text.size() < 4096);
      FUZZ_CHECK(std::none_of(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\x1b' || c == '\0'; }));
    }
    FUZZ_CHECK(!error.retry_after || (error.retry_after->count() >= 0 && error.retry_after->count() <= 86'400));
  }
  return 0;
}
