// Texts as the tools `read` and `write` treat them. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/json.h"

namespace playfs::app {

struct Excerpt {
  std::string_view text;  ///< whole lines, unless one alone is too long
  std::size_t next = 0;   ///< the line that comes next, from 1; 0: none
  std::size_t lines = 0;  ///< of the whole text
};
/// Lines of a text from `first` on, counted from 1; at most `limit`, and as many as fit into an answer.
Excerpt lines_from(std::string_view text, std::size_t first, std::optional<std::uint32_t> limit);

/// The arguments of `write`.
struct WriteRequest {
  std::string path;
  bool is_deletion = false;
  bool is_whole = false;  ///< `content` is the whole file; else `old` is replaced
  std::string content, old, fresh;
  bool replaces_all = false;
  std::optional<bool> executable;

  static Result<WriteRequest> from(const JsonObject& arguments);
};

struct Edited {
  std::string text;
  std::size_t count = 0;
};
/// Errors: invalid_argument unless what is to be replaced occurs, and once if not all are to be.
Result<Edited> edit(const std::string& text, const WriteRequest& wanted);

}  // namespace playfs::app
