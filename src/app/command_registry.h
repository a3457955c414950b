// Where commands are added to the command line: each with its arguments, its function and what help says of it.
//
// For one thread. The CLI::App must outlive the registry, which must outlive parsing.
#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "app/command_line.h"

namespace playfs::app {

class CommandRegistry {
 public:
  explicit CommandRegistry(CLI::App& app) : app_(app) { common(app); }

  [[nodiscard]] CLI::App& app() { return app_; }
  /// The command that was parsed, without its action if there is none.
  [[nodiscard]] Invocation& invocation() { return invocation_; }

  /// Adds a command under `parent`. Its arguments live as long as the parser, and then as long as the action.
  template <class Arguments>
  CLI::App* add(CLI::App& parent, const char* name, const char* description, const char* examples,
                Result<ExitCode> (*run)(CommandContext&, const Arguments&), std::shared_ptr<Arguments>& arguments) {
    arguments = std::make_shared<Arguments>();
    CLI::App* added = parent.add_subcommand(name, description);
    added->footer(std::string("Examples:\n") + examples);
    common(*added);
    added->callback([this, run, arguments, added] {
      if (!added->get_subcommands().empty()) return;  // that one's action counts
      invocation_.action = [run, arguments](CommandContext& context) { return run(context, *arguments); };
    });
    return added;
  }

  /// Adds a command that only has subcommands: `playfs thread list`.
  CLI::App* add_group(const char* name, const char* description, const char* examples) {
    CLI::App* added = app_.add_subcommand(name, description);
    added->footer(std::string("Examples:\n") + examples);
    added->require_subcommand(1);
    common(*added);
    return added;
  }

 private:
  void common(CLI::App& command) {
    command.add_flag("--json", invocation_.json, "Print one JSON document");
    command
        .add_option_function<std::string>(
            "--site", [this](const std::string& site) { invocation_.site = site; },
            "The service, if no mount determines it")
        ->type_name("SRC");
  }

  CLI::App& app_;
  Invocation invocation_;
};

/// mount, run, umount, serve.
void add_mounting_commands(CommandRegistry& registry);
/// status, diff, log, blame, commit, checkpoint, discard, restore, revert, update, merge, branches.
void add_work_tree_commands(CommandRegistry& registry);
/// agent, thread, post, mail, sendmail, space, inbox, search.
void add_conversation_commands(CommandRegistry& registry);
/// login, logout, whoami.
void add_identity_commands(CommandRegistry& registry);

}  // namespace playfs::app
