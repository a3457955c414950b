// Formats commands so that people can paste them into a shell. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace playfs {

/// `word` as one word of a POSIX shell, quoted if needed; control characters as $'…' (bash, zsh and newer shells). A
/// shell that does not know this form reads it as one other word.
std::string shell_word(std::string_view word);

/// `words` as one command line.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace playfs
