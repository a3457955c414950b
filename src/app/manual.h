// The commands as man pages, from the same table that --help prints. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace playfs::app {

struct OptionHelp {
  std::vector<std::string> names;  ///< "-m", "--message"; for an operand, its name
  std::string value;               ///< "MESSAGE"; empty for a flag
  std::string text;
  bool required = false;
  bool repeated = false;             ///< may be given several times
  std::vector<std::string> choices;  ///< the words that it may be, if it takes no others
};

struct CommandHelp {
  std::string name;
  std::vector<std::string> aliases;
  std::string text;
  std::string examples;  ///< lines, indented
  std::vector<OptionHelp> operands;
  std::vector<OptionHelp> options;
  std::vector<CommandHelp> subcommands;  ///< of a command such as `thread`, which does nothing without one
};

/// Whether an option of the same names is among them.
bool is_among(const OptionHelp& option, const std::vector<OptionHelp>& options);
std::string joined(const std::vector<std::string>& words, std::string_view between = " ");

/// The COMMANDS part of playfs(1), in man(7)'s macros. `everywhere`: options of playfs itself, which are not repeated.
std::string manual_of(const std::vector<CommandHelp>& commands, const std::vector<OptionHelp>& everywhere);

/// The man page playfs-NAME(1) of a command. For an alias it includes the command's own page. Empty: there is no such
/// command.
std::string page_of(std::string_view name, const std::vector<CommandHelp>& commands,
                    const std::vector<OptionHelp>& everywhere);

}  // namespace playfs::app
