#include "mcp/lines.h"

#include "base/text.h"

namespace playfs::mcp {

void Lines::take(std::string_view line) {
  if (!trim(line, " \t\r").empty()) takers_.line(line);
}

void Lines::feed(std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    const bool is_whole = end != std::string_view::npos;
    const std::string_view part = piece.substr(0, end);
    piece.remove_prefix(is_whole ? end + 1 : piece.size());
    if (!skips_ && begun_.size() + part.size() > longest_) {
      skips_ = true;
      begun_ = {};  // returns the memory
      takers_.too_long();
    }
    if (!skips_ && is_whole && begun_.empty()) take(part);
    else if (!skips_) begun_ += part;
    if (!is_whole) continue;
    if (!skips_ && !begun_.empty()) take(begun_);
    skips_ = false;
    begun_ = {};
  }
}

void Lines::end() {
  const std::string last = std::move(begun_);
  begun_ = {};
  if (!skips_) take(last);
  skips_ = false;
}

}  // namespace playfs::mcp
