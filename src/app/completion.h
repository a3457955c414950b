// Completion scripts for shells, made from the table of commands that --help prints. Pure functions.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "app/manual.h"

namespace playfs::app {

inline constexpr std::array kShells{"bash", "zsh", "fish"};

/// The script for one of kShells. `everywhere`: options of playfs itself.
std::string completion_of(std::string_view shell, const std::vector<CommandHelp>& commands,
                          const std::vector<OptionHelp>& everywhere);

}  // namespace playfs::app
