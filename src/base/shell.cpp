#include "base/shell.h"

#include <algorithm>

#include <fmt/format.h>

namespace playfs {

std::string shell_word(std::string_view word) {
  // Non-ASCII bytes are letters in file names; `~` and `=` are special only at the beginning of a word.
  auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:,=@%+").find(c) != std::string_view::npos || static_cast<unsigned char>(c) >= 0x80;
  };
  bool plain = !word.empty() && word.front() != '=';
  for (char c : word) plain = plain && is_plain(c);
  if (plain) return std::string(word);
  auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(word.begin(), word.end(), is_control)) {
    std::string escaped = "$'";
    for (char c : word) {
      // dash takes a backslash and a quote for the end of the word.
      if (is_control(c) || c == '\'' || c == '\\') escaped += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
      else escaped += c;
    }
    return escaped + "'";
  }
  std::string quoted = "'";
  for (char c : word) {
    if (c == '\'') quoted += "'\\''";
    else quoted += c;
  }
  return quoted + "'";
}

std::string shell_operand(std::string_view word) { return (word.starts_with('-') ? "-- " : "") + shell_word(word); }

std::string shell_line(const ShellCommand& command) {
  std::string line;
  auto add = [&](const std::vector<std::string>& words) {
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  };
  add(command.words);
  if (std::none_of(command.operands.begin(), command.operands.end(), [](const auto& word) { return word[0] == '-'; })) {
    add(command.operands);
    add(command.options);
  } else {
    add(command.options);
    line += " --";
    add(command.operands);
  }
  return line;
}

}  // namespace playfs
