// Shared by all targets. A target is one file with LLVMFuzzerTestOneInput, whose properties must hold for any bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

/// Aborts if a property does not hold, so the fuzzer keeps the input.
#define FUZZ_CHECK(condition)           \
  do {                                  \
    if (!(condition)) __builtin_trap(); \
  } while (false)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// An input that is split from the front. Missing parts are 0 or empty, so every input is valid. For one thread.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(as_text(data, size)) {}

  [[nodiscard]] bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  /// Uses two bytes, so small inputs reach the whole range. REQUIRES: end > 0.
  std::size_t below(std::size_t end) {
    const std::size_t high = byte();
    return (high << 8 | byte()) % end;
  }
  /// Up to the next 0xff, which UTF-8 never contains, or the end.
  std::string_view field() {
    std::string_view text = rest_.substr(0, rest_.find('\xff'));
    rest_.remove_prefix(std::min(rest_.size(), text.size() + 1));
    return text;
  }
  std::string_view bytes(std::size_t most) {
    std::string_view text = rest_.substr(0, most);
    rest_.remove_prefix(text.size());
    return text;
  }
  std::string_view rest() { return std::exchange(rest_, {}); }

 private:
  std::string_view rest_;
};
