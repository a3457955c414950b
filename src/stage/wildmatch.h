// git's wildmatch with WM_PATHNAME: `*`, `?` and `[…]` stay within a component, `**` between slashes spans them.
//
// Strangers write the patterns: for any pattern, the product of the lengths bounds the steps of a match, and every step
// is counted. Plain values.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace playfs::stage {

/// Budget for matching. A step is one rule examined, or one pattern element compared with a byte.
class Effort {
 public:
  explicit Effort(std::uint64_t steps = std::numeric_limits<std::uint64_t>::max()) : left_(steps) {}
  void allow(std::uint64_t steps) { left_ += std::min(steps, std::numeric_limits<std::uint64_t>::max() - left_); }
  /// False once the budget is used up: what was undecided stays undecided.
  bool spend() { return left_ > 0 && --left_ > 0; }
  [[nodiscard]] std::uint64_t left() const { return left_; }

 private:
  std::uint64_t left_;
};

class Pattern {
 public:
  /// As in git, an invalid pattern matches nothing.
  explicit Pattern(std::string_view text);
  /// nullopt: the effort ran out.
  [[nodiscard]] std::optional<bool> matches(std::string_view text, Effort& effort) const;

 private:
  using Set = std::bitset<256>;
  enum class Kind : std::uint8_t {
    byte,         // this byte
    any,          // one byte except a slash
    set,          // one byte of a set, never a slash
    star,         // any bytes except slashes
    everything,   // any bytes; only at the end
    directories,  // nothing, or any bytes and a slash; only at the start of a component
  };
  struct Place {
    Kind kind;
    char byte = 0;
    std::uint32_t set = 0;
  };

  [[nodiscard]] static std::optional<Set> take_set(std::string_view& rest);
  /// False for an invalid pattern.
  bool compile(std::string_view text);
  [[nodiscard]] bool takes(const Place& place, char byte) const;

  std::vector<Place> places_;
  std::vector<Set> sets_;
  std::size_t shortest_ = 0;  ///< minimum number of bytes that it matches
  std::size_t tail_ = 0;      ///< number of plain bytes at its end
  bool makes_sense_ = false;
};

}  // namespace playfs::stage
