#include "app/mcp/edit.h"

#include <algorithm>

#include "app/mcp/answers.h"
#include "app/work_files.h"

namespace playfs::app {

namespace {

/// What a model can be expected to read at once.
constexpr std::size_t kMostBytes = 128 << 10;
constexpr std::size_t kMostLines = 2'000;

}  // namespace

Excerpt lines_from(std::string_view text, std::size_t first, std::optional<std::uint32_t> limit) {
  Excerpt excerpt;
  const std::size_t most = std::min<std::size_t>(limit.value_or(kMostLines), kMostLines);
  std::size_t begin = text.size(), end = text.size();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t line = ++excerpt.lines;
    const std::size_t after = std::min(text.find('\n', at), text.size() - 1) + 1;
    if (line == first) begin = at;
    const bool is_full = line >= first + most || (line > first && after - begin > kMostBytes);
    if (line >= first && excerpt.next == 0 && is_full) excerpt.next = line, end = at;
    at = after;
  }
  excerpt.text = text.substr(begin, end - begin);
  if (excerpt.text.size() > kMostBytes) {
    // One endless line. Cut where no character is cut.
    std::size_t cut = kMostBytes;
    while (cut > 0 && (static_cast<unsigned char>(excerpt.text[cut]) & 0xC0) == 0x80) --cut;
    excerpt.text = excerpt.text.substr(0, cut);
  }
  return excerpt;
}

Result<WriteRequest> WriteRequest::from(const JsonObject& arguments) {
  PLAYFS_CHECK(check_arguments(arguments, {"path", "content", "old", "new", "all", "delete", "executable"}));
  WriteRequest wanted;
  PLAYFS_TRY(const auto path, text_argument(arguments, "path"));
  PLAYFS_TRY(const auto content, text_argument(arguments, "content"));
  PLAYFS_TRY(const auto old, text_argument(arguments, "old"));
  PLAYFS_TRY(const auto fresh, text_argument(arguments, "new"));
  PLAYFS_TRY(wanted.replaces_all, flag_argument(arguments, "all"));
  PLAYFS_TRY(wanted.is_deletion, flag_argument(arguments, "delete"));
  PLAYFS_TRY(const bool executable, flag_argument(arguments, "executable"));
  PLAYFS_TRY(wanted.path, path_in_project(path.value_or("")));
  if (arguments.find("executable")) wanted.executable = executable;
  if (wanted.path.empty()) return fail(ErrorCode::invalid_argument, "write needs the path of a file");
  if (int{content.has_value()} + int{old.has_value()} + int{wanted.is_deletion} != 1)
    return fail(ErrorCode::invalid_argument, "write needs one of content, old (with new) and delete");
  if (old && (old->empty() || !fresh))
    return fail(ErrorCode::invalid_argument, "old is a text of the file, and new is what replaces it");
  wanted.is_whole = content.has_value();
  wanted.content = content.value_or("");
  wanted.old = old.value_or("");
  wanted.fresh = fresh.value_or("");
  return wanted;
}

Result<Edited> edit(const std::string& text, const WriteRequest& wanted) {
  Edited edited;
  std::size_t at = 0;
  for (std::size_t found = text.find(wanted.old); found != std::string::npos; found = text.find(wanted.old, at)) {
    edited.text.append(text, at, found - at).append(wanted.fresh);
    if (edited.text.size() > WorkFiles::kLargest)
      return fail(ErrorCode::file_too_big,
                  "the result is larger than " + std::to_string(WorkFiles::kLargest) + " bytes");
    at = found + wanted.old.size();
    ++edited.count;
  }
  edited.text.append(text, at);
  if (edited.count == 0)
    return fail(ErrorCode::invalid_argument, "old does not occur in the file", "read the file, and copy old from it");
  if (edited.count > 1 && !wanted.replaces_all)
    return fail(ErrorCode::invalid_argument, "old occurs " + std::to_string(edited.count) + " times",
                "make it longer, or set all");
  return edited;
}

}  // namespace playfs::app
