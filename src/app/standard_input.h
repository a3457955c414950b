// Reads what a command is to send from standard input, and on a terminal says what to type. Blocking; for one thread.
#pragma once

#include <cstddef>
#include <string>

#include "app/command_context.h"

namespace playfs::app {

/// All of it, but at most one byte more than `longest`. `what`: "the text of the message", for people at a terminal.
std::string read_standard_input(CommandContext& context, const std::string& what, std::size_t longest);

}  // namespace playfs::app
