// Splits what a client writes into lines, whatever pieces it arrives in. Memory is bounded by the longest line. For one
// thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace playfs::mcp {

class Lines {
 public:
  struct Takers {
    std::function<void(std::string_view)> line;  ///< without its end; never blank
    std::function<void()> too_long;              ///< once for each line that exceeds the limit, which is skipped
  };
  Lines(std::size_t longest, Takers takers) : longest_(longest), takers_(std::move(takers)) {}

  void feed(std::string_view piece);
  /// No more will come: what is left is a line, too.
  void end();

 private:
  void take(std::string_view line);

  const std::size_t longest_;
  const Takers takers_;
  std::string begun_;
  bool skips_ = false;  ///< the rest of a line that was too long
};

}  // namespace playfs::mcp
