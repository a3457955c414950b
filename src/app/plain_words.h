// Words of the command line that CLI11 would not take as they are: `[a,b]` for a list, `{}` for an empty one, `%%` for
// the end of one, `++` for the end of a command, and an empty value in `--option=`. They may be the names of files, so
// they go past it with a mark.
// Pure.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace playfs::app {

/// Marks such words, and such values in words of the form `--option=value` or `-ovalue`.
std::vector<std::string> mark_plain_words(std::vector<std::string> words);

/// Makes every option and operand of `command` and its subcommands take marked words without the mark. Call it once,
/// after all of them have been added.
void take_plain_words(CLI::App& command);

/// A message of CLI11, which may quote words, without marks.
std::string without_marks(std::string message);

}  // namespace playfs::app
