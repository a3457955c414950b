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

bool takes_value(const OptionHelp& option) { return !option.value.empty(); }

std::vector<std::string> names_of(const std::vector<OptionHelp>& options, bool valued_only) {
  std::vector<std::string> names;
  for (const OptionHelp& option : options)
    if (!valued_only || takes_value(option)) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

void append_details(std::string& page, const CommandHelp& command, const std::vector<OptionHelp>& everywhere) {
  page += ".PP\n" + roff(command.text) + ".\n";
  for (const OptionHelp& operand : command.operands)
    page += ".TP\n\\fI" + roff(operand.names.front()) + "\\fR\n" + roff(operand.text) + "\n";
  auto is_repeated = [&](const OptionHelp& option) {
    return std::any_of(everywhere.begin(), everywhere.end(),
                       [&](const auto& each) { return each.names == option.names; });
  };
  for (const OptionHelp& option : command.options)
    if (!is_repeated(option)) append_option(page, option);
}

void append_examples(std::string& page, const CommandHelp& command) {
  page += ".PP\n.nf\n";
  std::istringstream lines(command.examples);
  for (std::string line; std::getline(lines, line);) page += roff(line) + "\n";
  page += ".fi\n";
}

/// The `case` clauses that set the options of a command and of its subcommands.
struct Clauses {
  std::string options, valued, actions, groups;

  void append(const CommandHelp& command, const std::string& before) {
    std::vector<std::string> names{command.name};
    names.insert(names.end(), command.aliases.begin(), command.aliases.end());
    if (!before.empty())
      for (std::string& name : names) name = "'" + before + name + "'";
    const std::string label = "    " + joined(names, "|") + ") ";
    options += label + "options='" + joined(names_of(command.options, false), " ") + "' ;;\n";
    if (auto with_value = names_of(command.options, true); !with_value.empty())
      valued += label + "valued=' " + joined(with_value, " ") + " ' ;;\n";
    if (command.subcommands.empty()) return;
    std::vector<std::string> inner;
    for (const CommandHelp& each : command.subcommands) {
      inner.push_back(each.name);
      append(each, command.name + " ");
    }
    actions += label + "actions='" + joined(inner, " ") + "' ;;\n";
    groups += (groups.empty() ? "" : "|") + command.name;
  }
};

}  // namespace

std::string manual_of(const std::vector<CommandHelp>& commands, const std::vector<OptionHelp>& everywhere) {
  std::string page;
  for (const CommandHelp& command : commands) {
    page += ".SS " + bold(command.name) + "\n";
    if (command.subcommands.empty()) {
      page += synopsis(command, command.name) + "\n";
      for (const std::string& alias : command.aliases) page += ".br\n" + synopsis(command, alias) + "\n";
    }
    append_details(page, command, everywhere);
    for (const CommandHelp& each : command.subcommands) {
      page += ".PP\n" + synopsis(each, command.name + " " + each.name) + "\n";
      append_details(page, each, everywhere);
    }
    append_examples(page, command);
  }
  return page;
}

std::string completion_of(const std::vector<CommandHelp>& commands, const std::vector<OptionHelp>& everywhere) {
  std::vector<std::string> names;
  Clauses clauses;
  for (const CommandHelp& command : commands) {
    names.push_back(command.name);
    names.insert(names.end(), command.aliases.begin(), command.aliases.end());
    clauses.append(command, "");
  }
  return "# Completion of playfs for bash, made from its own table of commands (playfs --generate bash).\n"
         "_playfs() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= options= valued= actions= "
         "i\n"
         "  COMPREPLY=()\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    [[ ${COMP_WORDS[i]} == -* ]] && continue\n"
         "    command+=${command:+ }${COMP_WORDS[i]}\n"
         "    case $command in\n"
         "    " +
         clauses.groups +
         ") ;;  # the next word belongs to it\n"
         "    *) break ;;\n"
         "    esac\n"
         "  done\n"
         "  if [[ -z $command ]]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         joined(names, " ") + " " + joined(names_of(everywhere, false), " ") +
         "' -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  case $command in\n" +
         clauses.options +
         "  esac\n"
         "  case $command in\n" +
         clauses.valued +
         "  esac\n"
         "  case $command in\n" +
         clauses.actions +
         "  esac\n"
         "  if [[ $before == -* && $valued == *\" $before \"* ]]; then\n"
         "    COMPREPLY=($(compgen -f -- \"$word\"))  # a value: a file, if anything\n"
         "  elif [[ $word == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
         "  elif [[ -n $actions ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$actions\" -- \"$word\"))\n"
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
