// Suggests the command that a mistyped one probably meant. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"

namespace playfs::app {

/// The error that names it, if the first word that is no command or subcommand is nearly one: with one mistake (a
/// character more, less or other, or two swapped) for each three characters, and at most two.
std::optional<Error> mistyped_command(const CLI::App& app, const std::vector<std::string>& argv);

}  // namespace playfs::app
