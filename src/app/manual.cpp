#include "app/manual.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace playfs::app {

namespace {

/// Escapes text so that roff prints it literally.
std::string roff(std::string_view text) {
  constexpr std::string_view kEllipsis = "…";
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out = "\\&";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') out += "\\e";
    else if (text[i] == '-') out += "\\-";
    else if (text[i] == '\'') out += "\\(aq";
    else if (text[i] == '~') out += "\\(ti";
    else if (text.substr(i).starts_with(kEllipsis)) out += "...", i += kEllipsis.size() - 1;
    else out += text[i];
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }

/// `name` includes the parent commands: "thread list".
std::string synopsis(const CommandHelp& command, const std::string& name) {
  std::string text = bold("playfs " + name);
  if (!command.options.empty()) text += " [\\fIOPTION\\fR]...";
  for (const OptionHelp& operand : command.operands) {
    const std::string& shown = operand.names.front();
    text += " " + (operand.required || shown.starts_with('[') ? roff(shown) : "[" + roff(shown) + "]");
  }
  return text;
}

void append_option(std::string& page, const OptionHelp& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(bold(name));
  page += ".TP\n" + joined(names, ", ") + (option.value.empty() ? "" : " \\fI" + roff(option.value) + "\\fR") + "\n" +
          roff(option.text) + "\n";
}

/// Whether the command does something without a subcommand: `checkpoint` does, `thread` does not.
bool stands_alone(const CommandHelp& command, const std::vector<OptionHelp>& everywhere) {
  return command.subcommands.empty() || !std::all_of(command.options.begin(), command.options.end(),
                                                     [&](const auto& option) { return is_among(option, everywhere); });
}

/// Operands, then options.
void append_words(std::string& page, const CommandHelp& command, const std::vector<OptionHelp>& everywhere) {
  for (const OptionHelp& operand : command.operands)
    page += ".TP\n\\fI" + roff(operand.names.front()) + "\\fR\n" + roff(operand.text) + "\n";
  for (const OptionHelp& option : command.options)
    if (!is_among(option, everywhere)) append_option(page, option);
}

void append_details(std::string& page, const CommandHelp& command, const std::vector<OptionHelp>& everywhere) {
  page += ".PP\n" + roff(command.text) + ".\n";
  append_words(page, command, everywhere);
}

/// Lines as they are.
void append_examples(std::string& page, std::string_view lines) {
  page += ".nf\n";
  std::istringstream text{std::string(lines)};
  for (std::string line; std::getline(text, line);) page += roff(line) + "\n";
  page += ".fi\n";
}

std::string own_page(const CommandHelp& command, const std::vector<OptionHelp>& everywhere) {
  constexpr std::string_view kHeading = "Examples:\n";
  std::string title = "PLAYFS-" + command.name, names = roff("playfs-" + command.name);
  std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
  for (const std::string& alias : command.aliases) names += ", " + roff("playfs-" + alias);
  std::string page = ".TH " + title + " 1 \"\" \"playfs " PLAYFS_VERSION "\" \"User Commands\"\n.SH NAME\n" + names +
                     " \\- " + roff(command.text) + "\n.SH SYNOPSIS\n";
  std::vector<std::string> ways;
  if (stands_alone(command, everywhere)) ways.push_back(synopsis(command, command.name));
  for (const std::string& alias : command.aliases) ways.push_back(synopsis(command, alias));
  for (const CommandHelp& each : command.subcommands) ways.push_back(synopsis(each, command.name + " " + each.name));
  page += joined(ways, "\n.br\n") + "\n";
  page += ".SH DESCRIPTION\n" + roff(command.text) + ".\n";
  append_words(page, command, everywhere);
  for (const CommandHelp& each : command.subcommands) {
    page += ".SS " + bold(command.name + " " + each.name) + "\n" + roff(each.text) + ".\n";
    append_words(page, each, everywhere);
  }
  page += ".SH EXAMPLES\n";
  std::string_view examples = command.examples;
  if (examples.starts_with(kHeading)) examples.remove_prefix(kHeading.size());
  append_examples(page, examples);
  return page + ".SH SEE ALSO\n.BR playfs (1)\nhas what all commands share: " + bold("--json") + ", " + bold("--site") +
         ", exit codes, environment and files.\n";
}

}  // namespace

bool is_among(const OptionHelp& option, const std::vector<OptionHelp>& options) {
  return std::any_of(options.begin(), options.end(), [&](const auto& each) { return each.names == option.names; });
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  return fmt::format("{}", fmt::join(words, between));
}

std::string manual_of(const std::vector<CommandHelp>& commands, const std::vector<OptionHelp>& everywhere) {
  std::string page;
  for (const CommandHelp& command : commands) {
    page += ".SS " + bold(command.name) + "\n";
    if (stands_alone(command, everywhere)) {
      page += synopsis(command, command.name) + "\n";
      for (const std::string& alias : command.aliases) page += ".br\n" + synopsis(command, alias) + "\n";
    }
    append_details(page, command, everywhere);
    for (const CommandHelp& each : command.subcommands) {
      page += ".PP\n" + synopsis(each, command.name + " " + each.name) + "\n";
      append_details(page, each, everywhere);
    }
    page += ".PP\n";
    append_examples(page, command.examples);
  }
  return page;
}

std::string page_of(std::string_view name, const std::vector<CommandHelp>& commands,
                    const std::vector<OptionHelp>& everywhere) {
  for (const CommandHelp& command : commands) {
    if (command.name == name) return own_page(command, everywhere);
    const auto& aliases = command.aliases;
    if (std::find(aliases.begin(), aliases.end(), name) != aliases.end())
      return ".so man1/playfs-" + command.name + ".1\n";
  }
  return "";
}

}  // namespace playfs::app
