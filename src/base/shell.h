// Formats commands so that people can paste them into a shell. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace playfs {

/// `word` as one word of a POSIX shell, quoted if needed; control characters as $'…' (bash, zsh and newer shells). A
/// shell that does not know this form reads it as one other word.
std::string shell_word(std::string_view word);

/// An operand that comes from somebody else, such as a record's id: with "--" before it if a program would take it for
/// an option. Only operands may follow. An option's value needs no such care.
std::string shell_operand(std::string_view word);

struct ShellCommand {
  std::vector<std::string> words;          ///< the program, its subcommands, options
  std::vector<std::string> operands = {};  ///< whatever they begin with
  std::vector<std::string> options = {};   ///< that come last, for easier reading
};
/// As one command line. If an operand looks like an option, all come last, after "--".
std::string shell_line(const ShellCommand& command);

}  // namespace playfs
