#include "base/random.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/text.h"

namespace playfs {

std::uint64_t Random::next() {
  std::uint64_t value = 0;
  fill(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

std::string Random::uuid() {
  std::array<std::byte, 16> bytes{};
  fill(bytes);
  bytes[6] = (bytes[6] & std::byte{0x0f}) | std::byte{0x40};
  bytes[8] = (bytes[8] & std::byte{0x3f}) | std::byte{0x80};
  std::string digits = to_hex(bytes);
  for (std::size_t position : {20, 16, 12, 8}) digits.insert(position, 1, '-');
  return digits;
}

std::string Random::hex(std::size_t digits) {
  std::string bytes((digits + 1) / 2, '\0');
  fill(std::as_writable_bytes(std::span(bytes)));
  return to_hex(std::as_bytes(std::span(bytes))).substr(0, digits);
}

void SystemRandom::fill(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      std::abort();  // no getrandom: nothing that follows could be trusted
    }
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace playfs
