// Commands as a person can paste them into a shell. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace playfs::app {

/// `word` as one word of a POSIX shell, quoted where it has to be; control characters as the $'…' that bash, zsh and
/// newer shells have.
std::string shell_word(std::string_view word);

/// `words` as one command line.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace playfs::app
