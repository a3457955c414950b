// Injectable randomness, so that the simulator can replay a run. Implementations are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace playfs {

class Random {
 public:
  virtual ~Random() = default;
  virtual void fill(std::span<std::byte> bytes) = 0;

  /// Uniform in [0, 2^64).
  std::uint64_t next();
  /// A random (version 4) UUID in its usual 36-character form.
  std::string uuid();
  /// `digits` lowercase hex digits.
  std::string hex(std::size_t digits);
};

/// The kernel's CSPRNG, getrandom(2).
class SystemRandom final : public Random {
 public:
  void fill(std::span<std::byte> bytes) override;
};

}  // namespace playfs
