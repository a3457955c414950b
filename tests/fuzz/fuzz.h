// What every target shares. A target is one file with LLVMFuzzerTestOneInput; it must hold for any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// Stops the run where an invariant does not hold, with the input kept by the fuzzer.
#define FUZZ_CHECK(condition)           \
  do {                                  \
    if (!(condition)) __builtin_trap(); \
  } while (false)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}
