// git's wildmatch with WM_PATHNAME: `*`, `?` and `[…]` stay within a component, `**` between slashes spans them.
//
// Patterns come from strangers: whatever the pattern, a match takes a number of steps that the product of the lengths
// bounds, and every step is counted. Plain values.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace playfs::stage {

/// What may be spent on matching. A step is a rule that is looked at, or a place of a pattern held against a byte.
class Effort {
 public:
  explicit Effort(std::uint64_t steps = std::numeric_limits<std::uint64_t>::max()) : left_(steps) {}
  void allow(std::uint64_t steps) { left_ += std::min(steps, std::numeric_limits<std::uint64_t>::max() - left_); }
  /// False once nothing is left: what was not decided by then is not decided.
  bool spend() { return left_ > 0 && --left_ > 0; }
  [[nodiscard]] std::uint64_t left() const { return left_; }

 private:
  std::uint64_t left_;
};

class Pattern {
 public:
  /// A pattern that makes no sense matches nothing, as in git.
  explicit Pattern(std::string_view text);
  /// nullopt: the effort did not suffice.
  [[nodiscard]] std::optional<bool> matches(std::string_view text, Effort& effort) const;

 private:
  using Set = std::bitset<256>;
  enum class Kind : std::uint8_t {
    byte,         // this byte
    any,          // one byte that is no slash
    set,          // one byte of a set, no slash
    star,         // bytes that are no slash
    everything,   // any bytes; only at the end
    directories,  // nothing, or any bytes and a slash; only at the beginning of a component
  };
  struct Place {
    Kind kind;
    char byte = 0;
    std::uint32_t set = 0;
  };

  [[nodiscard]] static std::optional<Set> take_set(std::string_view& rest);
  /// False for a pattern that makes no sense.
  bool compile(std::string_view text);
  [[nodiscard]] bool takes(const Place& place, char byte) const;

  std::vector<Place> places_;
  std::vector<Set> sets_;
  std::size_t shortest_ = 0;  ///< bytes that it takes at least
  std::size_t tail_ = 0;      ///< places at its end that are plain bytes
  bool makes_sense_ = false;
};

}  // namespace playfs::stage
