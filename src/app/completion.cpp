#include "app/completion.h"

#include <fmt/format.h>

namespace playfs::app {

namespace {

/// The command whose operand is a revision beside head.
constexpr std::string_view kTakesBranch = "merge";

bool takes_value(const OptionHelp& option) { return !option.value.empty(); }

std::vector<std::string> names_of(const std::vector<OptionHelp>& options, bool valued_only = false) {
  std::vector<std::string> names;
  for (const OptionHelp& option : options)
    if (!valued_only || takes_value(option)) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<std::string> names_of(const CommandHelp& command) {
  std::vector<std::string> names{command.name};
  names.insert(names.end(), command.aliases.begin(), command.aliases.end());
  return names;
}

/// The commands with subcommands: their next word belongs to the command's name.
std::vector<std::string> groups_of(const std::vector<CommandHelp>& commands) {
  std::vector<std::string> names;
  for (const CommandHelp& command : commands)
    if (!command.subcommands.empty()) names.push_back(command.name);
  return names;
}

enum class Completes { nothing, directories, files, commands };

/// What a value or operand of this name may be: "DIR", "[REV[..REV]] PATH", "spec|off|FILE".
Completes completes(std::string_view name) {
  auto names = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  if (names("FILE") || names("PATH")) return Completes::files;
  if (names("DIR")) return Completes::directories;
  return name == "COMMAND" ? Completes::commands : Completes::nothing;
}

std::string with_escapes(std::string_view text, std::string_view special) {
  std::string out;
  for (char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// bash

/// The `case` clauses that set the options of a command and of its subcommands.
struct Clauses {
  std::string options, valued, actions;

  void append(const CommandHelp& command, const std::string& before) {
    std::vector<std::string> names = names_of(command);
    if (!before.empty())
      for (std::string& name : names) name = "'" + before + name + "'";
    const std::string label = "    " + joined(names, "|") + ") ";
    options += label + "options='" + joined(names_of(command.options)) + "' ;;\n";
    if (auto with_value = names_of(command.options, true); !with_value.empty())
      valued += label + "valued=' " + joined(with_value) + " ' ;;\n";
    std::vector<std::string> inner;
    for (const OptionHelp& operand : command.operands)
      inner.insert(inner.end(), operand.choices.begin(), operand.choices.end());
    for (const CommandHelp& each : command.subcommands) {
      inner.push_back(each.name);
      append(each, command.name + " ");
    }
    if (!inner.empty()) actions += label + "actions='" + joined(inner) + "' ;;\n";
  }
};

std::string bash(const std::vector<CommandHelp>& commands, const std::vector<OptionHelp>& everywhere) {
  std::vector<std::string> names;
  Clauses clauses;
  for (const CommandHelp& command : commands) {
    for (const std::string& name : names_of(command)) names.push_back(name);
    clauses.append(command, "");
  }
  return fmt::format(
      R"script(# Completion of playfs for bash, made from its own table of commands (playfs completion bash).
_playfs() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command= options= valued= actions= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${{COMP_WORDS[i]}} == --site ]] && {{ ((++i)); continue; }}
    [[ ${{COMP_WORDS[i]}} == -* ]] && continue
    command+=${{command:+ }}${{COMP_WORDS[i]}}
    case $command in
    {}) ;;  # the next word belongs to it
    *) break ;;
    esac
  done
  if [[ -z $command ]]; then
    COMPREPLY=($(compgen -W '{} {}' -- "$word"))
    return
  fi
  case $command in
{}  esac
  case $command in
{}  esac
  case $command in
{}  esac
  if [[ $before == -* && $valued == *" $before "* ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$word")  # a value: a file, if anything
  elif [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ -n $actions ]]; then
    COMPREPLY=($(compgen -W "$actions" -- "$word"))
  elif [[ $command == {} ]]; then
    # The revisions beside head, as far as a mount around here has them already. The directory may be a published one, with
    # names of anybody's choice: compgen -W runs commands in its words, and readline leaves $ and ` in names that are not
    # in this directory.
    local directory=$PWD
    while [[ -n $directory && ! -d $directory/branches ]]; do directory=${{directory%/*}}; done
    mapfile -t COMPREPLY < <(builtin cd -- "${{directory:-/nowhere}}/branches" 2>/dev/null && compgen -f -- "$word" |
      command grep -x '[[:alnum:]][[:alnum:]_.-]*')
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}}
complete -o filenames -o bashdefault -F _playfs playfs
)script",
      joined(groups_of(commands), "|"), joined(names), joined(names_of(everywhere)), clauses.options, clauses.valued,
      clauses.actions, kTakesBranch);
}

// zsh

/// A word in single quotes.
std::string zsh_word(std::string_view text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// `:NAME:ACTION` of _arguments, for the value of an option or for an operand.
std::string zsh_value(const std::string& name, const OptionHelp& option, bool is_branch = false) {
  std::string action = "()";  // no words; " " would keep zsh from inserting an option that is typed here
  if (is_branch) action = "_playfs_branches";
  else if (!option.choices.empty()) action = "(" + joined(option.choices) + ")";
  else if (completes(name) == Completes::files) action = "_files";
  else if (completes(name) == Completes::directories) action = "_files -/";
  else if (completes(name) == Completes::commands) action = "_normal";
  return ":" + with_escapes(name, ":\\") + ":" + action;
}

std::string zsh_options(const std::vector<OptionHelp>& options) {
  std::string lines;
  for (const OptionHelp& option : options) {
    const bool ends_all = option.names.back() == "--help" || option.names.back() == "--version";
    const std::string excluded = ends_all ? "(- *)" : option.repeated ? "*" : "(" + joined(option.names) + ")";
    for (const std::string& name : option.names) {
      // The value follows as the next word, or in the same one: "-mTEXT", "--message=TEXT".
      const char* joint = !takes_value(option) ? "" : name.starts_with("--") ? "=" : "+";
      const std::string value = takes_value(option) ? zsh_value(option.value, option) : "";
      lines += " \\\n    " + zsh_word(excluded + name + joint + "[" + with_escapes(option.text, "[]:\\") + "]" + value);
    }
  }
  return lines;
}

/// The function for a command that does nothing without another word, which says what to do.
std::string zsh_group(const std::string& function, const std::vector<CommandHelp>& commands,
                      const std::vector<OptionHelp>& options) {
  std::string described;
  for (const CommandHelp& command : commands)
    for (const std::string& name : names_of(command)) described += "\n        " + zsh_word(name + ":" + command.text);
  return fmt::format(R"({0}() {{
  local curcontext=$curcontext state line
  typeset -A opt_args
  _arguments -C -S -A '-*'{1} \
    '1: :->name' '*:: :->arguments' && return
  case $state in
    name)
      local -a choices=({2})
      _describe command choices ;;
    arguments)
      (( ! $+functions[{0}-$words[1]] )) || {0}-$words[1] ;;
  esac
}}
)",
                     function, zsh_options(options), described);
}

std::string zsh_command(const std::string& before, const CommandHelp& command) {
  const std::string function = before + "-" + command.name;
  std::string text;
  if (command.subcommands.empty()) {
    text = function + "() {\n  _arguments -s -S" + zsh_options(command.options);
    for (const OptionHelp& operand : command.operands) {
      const std::string value = zsh_value(operand.names.front(), operand, command.name == kTakesBranch);
      // A command's own words and options are completed as if it stood alone.
      const char* which = completes(operand.names.front()) == Completes::commands ? "*:"
                          : operand.repeated                                      ? "*"
                          : operand.required                                      ? ""
                                                                                  : ":";
      text += " \\\n    " + zsh_word(which + value);
    }
    text += "\n}\n";
  } else {
    text = zsh_group(function, command.subcommands, command.options);
    for (const CommandHelp& each : command.subcommands) text += zsh_command(function, each);
  }
  for (const std::string& alias : command.aliases) text += before + "-" + alias + "() { " + function + "; }\n";
  return text;
}

std::string zsh(const std::vector<CommandHelp>& commands, const std::vector<OptionHelp>& everywhere) {
  std::string text =
      "#compdef playfs\n"
      "# Completion of playfs for zsh, made from its own table of commands (playfs completion zsh).\n"
      "\n"
      "# The revisions beside head, as far as a mount around here has them already.\n"
      "_playfs_branches() {\n"
      "  local directory=$PWD\n"
      "  while [[ -n $directory && ! -d $directory/branches ]]; do directory=${directory%/*}; done\n"
      "  local -a revisions=($directory/branches/*(N:t))\n"
      "  compadd -a revisions\n"
      "}\n";
  for (const CommandHelp& command : commands) text += zsh_command("_playfs", command);
  text += zsh_group("_playfs", commands, everywhere);
  return text +
         "# As a file in $fpath, this is the function itself; otherwise it was sourced.\n"
         "if [[ $funcstack[1] == _playfs ]]; then _playfs \"$@\"; else compdef _playfs playfs; fi\n";
}

// fish

/// A word in single quotes.
std::string fish_word(std::string_view text) { return "'" + with_escapes(text, "\\'") + "'"; }

/// What follows `complete -c playfs` to offer what a value or operand may be.
std::string fish_value(const std::string& name, const OptionHelp& option) {
  if (!option.choices.empty()) return " -a " + fish_word(joined(option.choices));
  switch (completes(name)) {
    case Completes::files: return " -F";
    case Completes::directories: return " -a '(__fish_complete_directories)'";
    case Completes::commands: return " -F -a '(__fish_complete_command)'";
    case Completes::nothing: break;
  }
  return "";
}

std::string fish_option(const std::string& condition, const OptionHelp& option) {
  std::string line = "complete -c playfs" + condition;
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (takes_value(option)) {
    const std::string value = fish_value(option.value, option);
    line += (value.starts_with(" -F") ? " -r" : " -x") + value;
  }
  return line + " -d " + fish_word(option.text) + "\n";
}

void append_fish(std::string& text, const CommandHelp& command, const std::string& before,
                 const std::vector<OptionHelp>& always) {
  std::string condition;
  for (const std::string& name : names_of(command)) condition += " " + fish_word(before + name);
  condition = " -n " + fish_word("__playfs_is" + condition);
  for (const OptionHelp& option : command.options) {
    if (!is_among(option, always)) text += fish_option(condition, option);
  }
  for (const OptionHelp& operand : command.operands) {
    std::string value = fish_value(operand.names.front(), operand);
    if (command.name == kTakesBranch) value = " -a '(__playfs_branches)'";
    if (!value.empty()) text += "complete -c playfs" + condition + value + "\n";
  }
  for (const CommandHelp& each : command.subcommands) {
    text += "complete -c playfs" + condition + " -a " + each.name + " -d " + fish_word(each.text) + "\n";
    append_fish(text, each, command.name + " ", always);
  }
}

std::string fish(const std::vector<CommandHelp>& commands, const std::vector<OptionHelp>& everywhere) {
  std::string text = fmt::format(
      R"(# Completion of playfs for fish, made from its own table of commands (playfs completion fish).

# Whether the line's command is one of these: "commit", "thread list", or "" if there is none yet.
function __playfs_is
    set -l words (commandline -opc)
    set -l command
    set -l is_value
    for word in $words[2..-1]
        if test -n "$is_value"
            set is_value
        else if test "$word" = --site
            set is_value yes
        else if not string match -q -- '-*' "$word"
            set command (string join ' ' -- $command $word)
            contains -- "$command" {}; or break # the next word belongs to it
        end
    end
    contains -- "$command" $argv
end

# The revisions beside head, as far as a mount around here has them already.
function __playfs_branches
    set -l directory $PWD
    while test -n "$directory"; and not test -d "$directory/branches"
        set directory (string replace -r '/[^/]*$' '' -- "$directory")
    end
    command ls -- "$directory/branches" 2>/dev/null
end

complete -c playfs -f
)",
      joined(groups_of(commands)));
  const std::string at_first = " -n '__playfs_is \"\"'";
  std::vector<OptionHelp> always;  // every command takes them, too
  for (const OptionHelp& option : everywhere) {
    const bool is_inner = is_among(option, commands.front().options);
    if (is_inner) always.push_back(option);
    text += fish_option(is_inner ? "" : at_first, option);
  }
  for (const CommandHelp& command : commands) {
    for (const std::string& name : names_of(command))
      text += "complete -c playfs" + at_first + " -a " + name + " -d " + fish_word(command.text) + "\n";
    append_fish(text, command, "", always);
  }
  return text;
}

}  // namespace

std::string completion_of(std::string_view shell, const std::vector<CommandHelp>& commands,
                          const std::vector<OptionHelp>& everywhere) {
  if (shell == "zsh") return zsh(commands, everywhere);
  if (shell == "fish") return fish(commands, everywhere);
  return bash(commands, everywhere);
}

}  // namespace playfs::app
