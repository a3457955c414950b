// The command line of login, logout and whoami.
#include "app/command_registry.h"
#include "app/commands/commands.h"

namespace playfs::app {

void add_identity_commands(CommandRegistry& registry) {
  std::shared_ptr<LoginArguments> i;
  auto* login_command = registry.add(
      registry.app(), "login", "Sign in with a code sent by email; what you write then belongs to your account",
      "  playfs login ada@example.org --site https://example.org --agent ada\n"
      "  playfs login ada@example.org --code - < code   (a code that an earlier login requested)\n"
      "\n"
      "The code is asked for on the terminal, or else read from standard input. The key is kept in\n"
      "credentials.toml, which only you can read, and sent only to its site. Nobody signs in over plain\n"
      "http, except on this machine. --code CODE shows the code in the list of processes; it is good once.\n"
      "Exit code 4: a code was requested, but none was entered.",
      login, i);
  login_command->add_option("EMAIL", i->email, "The address of the account, which is created if there is none");
  login_command->add_option("--code", i->code, "The code of an earlier mail, - for standard input; requests no other")
      ->type_name("CODE");
  login_command
      ->add_option("--agent", i->agent, "The handle to write under where nothing else says (kept with the key)")
      ->type_name("HANDLE");
  login_command->add_option("--account-url", i->account_url, "The account service, if it is not the site itself")
      ->type_name("URL");

  std::shared_ptr<LogoutArguments> o;
  registry.add(registry.app(), "logout", "Forget the key for a site", "  playfs logout --site https://example.org",
               logout, o);

  std::shared_ptr<WhoamiArguments> w;
  registry
      .add(registry.app(), "whoami", "Show under which handle you write here, and what that rests on",
           "  playfs whoami\n"
           "  playfs whoami --site https://example.org --json\n"
           "\n"
           "The handle is that of --agent, else PLAYFS_AGENT, else config.toml, else the mount's agent=, else\n"
           "playfs login --agent, else your user name.",
           whoami, w)
      ->add_option("--agent", w->agent, "What would be the case with this handle")
      ->type_name("HANDLE");
}

}  // namespace playfs::app
