#include "app/manual.h"

#include <algorithm>
#include <sstream>

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

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

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

bool takes_value(const OptionHelp& option) { return !option.value.empty(); }

/// The patterns of a case label: 'a|b'.
std::string label_of(const CommandHelp& command) {
  std::vector<std::string> names{command.name};
  names.insert(names.end(), command.aliases.begin(), command.aliases.end());
  return joined(names, "|");
}

std::vector<std::string> names_of(const std::vector<OptionHelp>& options, bool valued_only) {
  std::vector<std::string> names;
  for (const OptionHelp& option : options)
    if (!valued_only || takes_value(option)) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

}  // namespace

std::string manual_of(const std::vector<CommandHelp>& commands, const std::vector<OptionHelp>& everywhere) {
  std::string page;
  for (const CommandHelp& command : commands) {
    page += ".SS " + bold(command.name) + "\n";
    page += synopsis(command, command.name) + "\n";
    for (const std::string& alias : command.aliases) page += ".br\n" + synopsis(command, alias) + "\n";
    page += ".PP\n" + roff(command.text) + ".\n";
    for (const OptionHelp& operand : command.operands) {
      page += ".TP\n\\fI" + roff(operand.names.front()) + "\\fR\n" + roff(operand.text) + "\n";
    }
    auto is_repeated = [&](const OptionHelp& option) {
      return std::any_of(everywhere.begin(), everywhere.end(),
                         [&](const auto& each) { return each.names == option.names; });
    };
    for (const OptionHelp& option : command.options)
      if (!is_repeated(option)) append_option(page, option);
    page += ".PP\n.nf\n";
    std::istringstream lines(command.examples);
    for (std::string line; std::getline(lines, line);) page += roff(line) + "\n";
    page += ".fi\n";
  }
  return page;
}

std::string completion_of(const std::vector<CommandHelp>& commands, const std::vector<OptionHelp>& everywhere) {
  std::vector<std::string> names;
  std::string options, valued;
  for (const CommandHelp& command : commands) {
    names.push_back(command.name);
    names.insert(names.end(), command.aliases.begin(), command.aliases.end());
    options += "    " + label_of(command) + ") options='" + joined(names_of(command.options, false), " ") + "' ;;\n";
    if (auto with_value = names_of(command.options, true); !with_value.empty())
      valued += "    " + label_of(command) + ") valued=' " + joined(with_value, " ") + " ' ;;\n";
  }
  return "# Completion of playfs for bash, made from its own table of commands (playfs --generate bash).\n"
         "_playfs() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= options= valued= i\n"
         "  COMPREPLY=()\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    [[ ${COMP_WORDS[i]} == -* ]] || { command=${COMP_WORDS[i]}; break; }\n"
         "  done\n"
         "  if [[ -z $command ]]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         joined(names, " ") + " " + joined(names_of(everywhere, false), " ") +
         "' -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  case $command in\n" +
         options +
         "  esac\n"
         "  case $command in\n" +
         valued +
         "  esac\n"
         "  if [[ $before == -* && $valued == *\" $before \"* ]]; then\n"
         "    COMPREPLY=($(compgen -f -- \"$word\"))  # a value: a file, if anything\n"
         "  elif [[ $word == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
         "  elif [[ $command == merge ]]; then\n"
         "    # The revisions beside head, as far as a mount around here has them already.\n"
         "    local directory=$PWD\n"
         "    while [[ -n $directory && ! -d $directory/branches ]]; do directory=${directory%/*}; done\n"
         "    COMPREPLY=($(compgen -W \"$(ls -- \"${directory:-/nowhere}/branches\" 2>/dev/null)\" -- \"$word\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -o bashdefault -F _playfs playfs\n";
}

}  // namespace playfs::app
