// Checks incrementally whether content is text. One thread at a time.
#pragma once

#include <string>
#include <string_view>

namespace playfs {

/// Text is valid UTF-8 without NUL.
class TextCheck {
 public:
  void update(std::string_view piece);
  [[nodiscard]] bool is_text() const { return is_text_ && begun_.empty(); }

 private:
  bool is_text_ = true;
  std::string begun_;  ///< an incomplete character at the end of the last piece
};

}  // namespace playfs
