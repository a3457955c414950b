// The command line of mount, run, umount and serve.
#include <memory>

#include "app/command_registry.h"
#include "app/commands/commands.h"

namespace playfs::app {

namespace {

void add_mount(CommandRegistry& registry) {
  std::shared_ptr<MountArguments> m;
  auto* mount_command = registry.add(
      registry.app(), "mount", "Mount a service at a directory; returns when the mount is ready",
      "  playfs mount ~/play\n"
      "  playfs mount https://example.org ~/play -o agent=ada,refresh=30\n"
      "  playfs mount -o project=ID local:default ~/project\n"
      "  playfs mount ~/play   (remount what died here, with the same source and options)\n"
      "\n"
      "Options after -o: project=ID  revision=REV  ro  allow_other  uid=N  gid=N  umask=OCTAL  cafile=FILE\n"
      "  refresh=SECONDS  cache_size=SIZE  offline  agent=HANDLE  noprefetch  base_path=PATH  safe_symlinks\n"
      "  instructions=show|hide  nonempty  noexec  sync  default_permissions; options that only fstab needs\n"
      "  (_netdev, nofail, defaults, x-…) are ignored.\n"
      "\n"
      "Files that give instructions to agents (AGENTS.md, CLAUDE.md, .claude/, .mcp.json, .envrc, .vscode/ and\n"
      "the like) are hidden unless you published them from here; playfs status lists them. instructions=show\n"
      "shows them all, instructions=hide none that is published.",
      mount, m);
  mount_command->add_option("DIR", m->places, "What to mount (default: the local playground) and where")
      ->option_text("[SRC] DIR")
      ->required()
      ->expected(1, 2);
  mount_command->add_option("-o", m->options, "Mount options, comma-separated")
      ->type_name("OPTIONS")
      ->expected(1)
      ->allow_extra_args(false)  // the next word is SRC, not another list
      ->take_all();
  mount_command->add_flag("-f,--foreground", m->foreground, "Stay in the foreground until unmounted");
  mount_command->add_flag("--fake", m->fake, "Check everything, but mount nothing");
}

void add_run(CommandRegistry& registry) {
  std::shared_ptr<RunArguments> r;
  auto* run = registry.add(
      registry.app(), "run", "Run a command in a project's work tree, mounted for that command alone",
      "  playfs run demo -- make test\n"
      "  playfs run demo --commit -m 'Format' -- clang-format -i src/main.c\n"
      "  playfs run demo -- bash\n"
      "  playfs run demo --read-only -- grep -r TODO .\n"
      "\n"
      "Needs /dev/fuse and user namespaces, but neither root nor fusermount3. The work tree is mounted at\n"
      "$XDG_STATE_HOME/playfs/run/PROJECT, the same place each time, and only COMMAND and what it starts see\n"
      "it there. COMMAND begins in it; PLAYFS_MOUNT names it. playfs status, commit and the others work in\n"
      "it, and its other files are in .playfs/project. It belongs to COMMAND's user; in a user namespace,\n"
      "files of other users outside of it show 'nobody' as owner, and sudo does not work.\n"
      "\n"
      "When COMMAND ends, the work tree is unmounted; what COMMAND left running in the background loses it.\n"
      "Staged changes are kept for the next run or mount. Where user namespaces are refused, fusermount3\n"
      "mounts it at the same place, where this user's other processes see it too.\n"
      "\n"
      "Exit code: COMMAND's own; 128+N after signal N; 126 or 127 if it cannot be run or found. With\n"
      "--commit, that of playfs commit if COMMAND succeeds. Signals, terminal and standard streams are\n"
      "COMMAND's own; with --json, one document follows its output.",
      run_command, r);
  run->add_option("PROJECT", r->project, "Its id or name")->required();
  run->add_option("COMMAND", r->command, "The command and its arguments, after --")->required();
  auto* to_commit = run->add_flag("--commit", r->commit, "Publish what is staged, if COMMAND succeeds");
  auto* message =
      run->add_option("-m,--message", r->message, "What has changed, and why")->type_name("MESSAGE")->needs(to_commit);
  to_commit->needs(message);
  run->add_option("--agent", r->agent, "The author's handle")->type_name("HANDLE");
  run->add_option("--instructions", r->instructions, "Files that give instructions to agents (playfs mount --help)")
      ->type_name("show|hide");
  run->add_flag("--read-only", r->read_only, "Mount it read-only")->excludes(to_commit);
}

void add_umount(CommandRegistry& registry) {
  std::shared_ptr<UmountArguments> u;
  auto* umount_command = registry.add(registry.app(), "umount", "Unmount; staged changes stay staged",
                                      "  playfs umount ~/play\n  playfs umount --wait ~/play", umount, u);
  umount_command->add_option("DIR", u->directory, "The mount point")->required();
  umount_command->add_flag("--wait", u->wait, "Wait for a running publication to finish first");
}

void add_serve(CommandRegistry& registry) {
  std::shared_ptr<ServeArguments> s;
  auto* serve_command = registry.add(
      registry.app(), "serve", "Serve the Data API for a playground on this disk or in a database",
      "  playfs serve\n"
      "  playfs serve --listen 127.0.0.1:8787 --store /srv/playground\n"
      "  playfs serve --store postgresql://db.example.org/playground     one of several servers over a database\n"
      "  playfs serve backup /backup/monday.db --store /srv/playground   copy it while it is being served\n"
      "  playfs serve check --store /srv/playground                      read and verify all of it\n"
      "  playfs serve copy /srv/playground postgresql://db.example.org/playground\n"
      "                                             move it; again after an interruption. Then serve the new store\n"
      "  playfs serve reopen --store /srv/playground   write the old one again nevertheless\n"
      "\n"
      "For the domain steward, beside the running server:\n"
      "  playfs serve hide ID                       show nobody a record's fields; --undo: show them again\n"
      "  playfs serve answer MAIL -m TEXT           answer a mail; --state STATE says how it stands\n"
      "  playfs serve accounts                      list accounts, with their keys\n"
      "  playfs serve accounts revoke EMAIL [KEY]   make its keys invalid, or that one",
      serve, s);
  serve_command->add_option("ACTION", s->words, "Copy, check or change the store instead of serving it")
      ->option_text("[backup FILE | check | copy FROM TO | reopen | hide ID | answer MAIL | accounts]")
      ->expected(0, 4);
  serve_command->add_option("-m,--message", s->message, "The text of an answer")->type_name("TEXT");
  serve_command->add_option("--state", s->state, "How an answered mail stands")->type_name("STATE");
  serve_command->add_flag("--undo", s->undo, "Show a hidden record again");
  serve_command->add_option("--listen", s->listen, "Address and port to listen on; port 0 picks a free one")
      ->type_name("ADDR:PORT")
      ->capture_default_str();
  serve_command->add_option("--store", s->store, "Where to store the records (default: the local playground)")
      ->type_name("DIR|postgresql://HOST/DATABASE");
  serve_command->add_option("--limits", s->limits, "Write limits: as documented, none, or from a JSON file")
      ->type_name("spec|off|FILE")
      ->capture_default_str();
  serve_command->add_option("--host", s->hosts, "A host name of this site, besides its addresses")->type_name("NAME");
  serve_command->add_option("--proxy", s->proxies, "A proxy whose X-Forwarded-For header to trust")
      ->type_name("ADDRESS|NETWORK");
  serve_command->add_option("--steward-key", s->steward_key, "File with the domain steward's API key")
      ->type_name("FILE");
  serve_command->add_option("--access-log", s->access_log, "Log each request as a line of JSON")->type_name("FILE");
  serve_command
      ->add_option("--smtp", s->smtp, "The mail server for sign-in codes (default: an outbox file in the store)")
      ->type_name("smtp[s]://[USER@]HOST[:PORT]");
  serve_command->add_option("--smtp-password", s->smtp_password, "File with the mail server's password")
      ->type_name("FILE");
  serve_command->add_option("--mail-from", s->mail_from, "Sender address of sign-in codes")->type_name("ADDRESS");
  serve_command
      ->add_option("--drain", s->drain, "Keep serving for so long after SIGTERM, but report not ready (/healthz)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
}

}  // namespace

void add_mounting_commands(CommandRegistry& registry) {
  add_mount(registry);
  add_run(registry);
  add_umount(registry);
  add_serve(registry);
}

}  // namespace playfs::app
