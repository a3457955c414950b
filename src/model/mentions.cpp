#include "model/mentions.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/text.h"

namespace playfs {

namespace {

/// The longest run of backticks that may begin or end code. It bounds the work for runs that nothing ends.
constexpr std::size_t kLongestMark = 16;

/// The end of the run of `c` that begins at `at`.
std::size_t run_end(std::string_view text, std::size_t at, char c) {
  return std::min(text.find_first_not_of(c, at), text.size());
}

/// Takes the next line from `rest`, without its end.
std::string_view next_line(std::string_view& rest) {
  const std::string_view line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  return line;
}

/// How many characters mark the beginning of a fenced block of code; 0 if the line begins none.
std::size_t fence_of(std::string_view content) {
  if (!content.starts_with("```") && !content.starts_with("~~~")) return 0;
  const std::size_t length = run_end(content, 0, content[0]);
  // ```code``` in one line is not a block.
  return content[0] == '`' && content.find('`', length) != content.npos ? 0 : length;
}

/// Quoted lines and fenced blocks become empty lines, which also end a paragraph.
std::string without_quotes_and_blocks(std::string_view rest) {
  std::string out;
  out.reserve(rest.size());
  while (!rest.empty()) {
    const std::string_view line = next_line(rest);
    const std::string_view content = trim(line, " \t\r");
    if (const std::size_t fence = fence_of(content); fence > 0) {
      while (!rest.empty()) {
        const std::string_view end = trim(next_line(rest), " \t\r");
        if (end.size() >= fence && run_end(end, 0, content[0]) == end.size()) break;
      }
    } else if (!content.starts_with('>')) {
      out += content;
    }
    out += '\n';
  }
  return out;
}

/// `code` becomes one backtick. Code ends at a run of as many backticks as began it, in the same paragraph.
void append_without_code(std::string& out, std::string_view paragraph) {
  std::array<bool, kLongestMark + 1> is_unended{};
  for (std::size_t at = 0; at < paragraph.size();) {
    const std::size_t mark = std::min(paragraph.find('`', at), paragraph.size());
    out += paragraph.substr(at, mark - at);
    if (mark == paragraph.size()) return;
    at = run_end(paragraph, mark, '`');
    out += '`';
    const std::size_t length = at - mark;
    if (length > kLongestMark || is_unended[length]) continue;
    std::size_t begin = paragraph.find('`', at);
    std::size_t end = 0;
    while (begin != paragraph.npos && (end = run_end(paragraph, begin, '`')) - begin != length)
      begin = paragraph.find('`', end);
    if (begin == paragraph.npos) is_unended[length] = true;
    else at = end;
  }
}

/// What people wrote themselves, as prose.
std::string prose_of(std::string_view body) {
  const std::string lines = without_quotes_and_blocks(body);
  std::string out;
  std::string_view rest = lines;
  while (!rest.empty()) {
    const std::string_view paragraph = rest.substr(0, rest.find("\n\n"));
    append_without_code(out, paragraph);
    rest.remove_prefix(std::min(paragraph.size() + 2, rest.size()));
    out += "\n\n";
  }
  return out;
}

enum class Script {
  none,      ///< not part of a handle
  spaced,    ///< words are separated by spaces
  unspaced,  ///< sentences run on
};

struct Letter {
  Script script = Script::none;
  std::size_t length = 1;  ///< in bytes
};

Letter first_letter(std::string_view text) {
  if (text.empty()) return {};
  const CodePoint code = first_code_point(text);
  if (code.length == 0) return {};
  const auto is_in = [&](std::uint32_t first, std::uint32_t last) { return first <= code.value && code.value <= last; };
  if (is_in('0', '9') || is_in('A', 'Z') || is_in('a', 'z') || is_in('_', '_')) return {Script::spaced, code.length};
  // The blocks of letters from Latin-1 to Greek Extended, without signs and what is invisible.
  if (is_in(0xC0, 0x1FFF)) {
    const bool is_letter = code.value != 0xD7 && code.value != 0xF7 && code.value != 0x34F && code.value != 0x61C &&
                           code.value != 0x1680 && !is_in(0x115F, 0x1160) && !is_in(0x17B4, 0x17B5) &&
                           !is_in(0x180B, 0x180F);
    return {is_letter ? Script::spaced : Script::none, code.length};
  }
  // Kana, ideographs and Hangul syllables.
  const bool is_unspaced = is_in(0x3041, 0x3163) || is_in(0x3165, 0xD7FF);
  return {is_unspaced ? Script::unspaced : Script::none, code.length};
}

/// The length of the handle that `text` begins with; 0 if there is none.
std::size_t handle_length(std::string_view text) {
  const Script script = first_letter(text).script;
  if (script == Script::none) return 0;
  std::size_t length = 0;
  while (length <= kMaxMentionLength) {
    const std::string_view rest = text.substr(length);
    const bool joins = length > 0 && (rest.starts_with('.') || rest.starts_with('-'));
    const Letter next = first_letter(rest.substr(joins ? 1 : 0));
    if (next.script != script) break;
    length += next.length + (joins ? 1 : 0);
  }
  return length;
}

/// Whether what follows a handle shows that it is part of an address or of a package's name.
bool is_continued(std::string_view after) {
  return (after.starts_with('@') || after.starts_with('/')) && first_letter(after.substr(1)).script != Script::none;
}

}  // namespace

std::vector<std::string> mentions_in(std::string_view body) {
  std::vector<std::string> found;
  const std::string prose = prose_of(body);
  std::string_view rest = prose;
  bool in_word = false;  // what precedes keeps an "@" from being a mention
  while (!rest.empty() && found.size() < kMaxMentions) {
    const Letter letter = first_letter(rest);
    if (in_word && rest.starts_with("://")) {
      rest.remove_prefix(std::min(rest.find_first_of(" \t\r\n<>\"`"), rest.size()));
      in_word = false;
      continue;
    }
    if (rest.front() == '@' && !in_word) {
      const std::string_view handle = rest.substr(1, handle_length(rest.substr(1)));
      rest.remove_prefix(1 + handle.size());
      in_word = true;
      if (!handle.empty() && handle.size() <= kMaxMentionLength && !is_continued(rest) &&
          std::find(found.begin(), found.end(), handle) == found.end())
        found.emplace_back(handle);
      continue;
    }
    in_word = letter.script == Script::spaced || std::string_view("@/\\+").find(rest.front()) != std::string_view::npos;
    rest.remove_prefix(letter.length);
  }
  return found;
}

std::vector<std::string> mentions_after_edit(std::vector<std::string> before, std::string_view old_body,
                                             std::string_view body) {
  std::vector<std::string> now = mentions_in(body);
  const std::vector<std::string> were = mentions_in(old_body);
  auto is_in = [](const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  std::erase_if(before, [&](const std::string& each) { return is_in(were, each) || is_in(now, each); });
  std::move(before.begin(), before.end(), std::back_inserter(now));
  return now;
}

}  // namespace playfs
