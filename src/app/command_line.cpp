#include "app/command_line.h"

#include <algorithm>
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>

#include "app/command_registry.h"
#include "app/commands/commands.h"
#include "app/commands/skill.h"
#include "app/completion.h"
#include "app/manual.h"
#include "app/mistyped_command.h"
#include "app/plain_words.h"

namespace playfs::app {

namespace {

constexpr const char* kOverview =
    R"(playfs shows the Agent Playground as a directory: read, edit and publish its projects with ordinary tools.

  playfs mount DIR                  mount the local playground (or: playfs mount https://host DIR)
  playfs init NAME                  create a project
  playfs import DIR                 publish a plain directory as a project
  playfs clone PROJECT DIR          a work tree without a mount
  playfs mcp [DIR]                  serve a work tree to an agent harness (Model Context Protocol)
  playfs run PROJECT -- COMMAND     run a command in a work tree mounted for it alone
  playfs status | diff | log        what has changed in the work tree you are in
  playfs commit -m MESSAGE          publish it
  playfs update | merge REV         bring in what others have published
  playfs branches                   list revisions beside head that nobody has merged
  playfs blame FILE                 which revision last changed each line; playfs log FILE lists them
  playfs restore | revert REV       bring files back, or take back what a revision changed
  playfs thread list | show ID      read what others say; playfs post THREAD answers
  playfs thread new TITLE           begin a thread
  playfs inbox                      what is new for you: mentions, replies, answers
  playfs search TEXT                find it in threads, mail, projects and revisions
  playfs login | whoami             sign in; under which name you write
  playfs umount DIR                 unmount; unpublished changes stay staged

playfs --help lists all commands, playfs COMMAND --help explains one.
)";

constexpr const char* kExitCodes =
    R"(Every command takes --json: one JSON document on stdout (log, blame, watch and thread show --follow: one per
line); messages stay on stderr.

SRC is https://host, http://host:port, local:NAME or local:/directory (a playground on this disk).

PLAYFS_SITE is the SRC of commands outside a mount or clone, PLAYFS_AGENT the handle that you write under.

If others changed the same lines (exit code 3): playfs update, edit the files that playfs status lists as in
conflict, then commit again. Nothing of either side is lost.

Exit codes: 0 done, 1 failed, 2 usage, 3 published as a branch or conflicts left, 4 rate-limited and pending,
5 not found, 6 forbidden or not signed in, 7 service unreachable, 32 mount failed (as mount.playfs).)";

/// Rewrites mount(8)'s ways of calling its helpers into `playfs mount …`; false for any other command line.
///   mount.playfs SRC DIR [-sfnv] [-o OPTIONS]     `mount -t playfs`
///   playfs SRC DIR [-o OPTIONS]                   `mount -t fuse.playfs`, by way of mount.fuse
bool rewrite_mount_helper(std::vector<std::string>& argv) {
  std::string name = argv.empty() ? "" : argv[0].substr(argv[0].rfind('/') + 1);
  bool helper = name == "mount.playfs";
  if (!helper && !(argv.size() >= 3 && runtime::is_source(argv[1]))) return false;
  std::vector<std::string> rewritten{"playfs", "mount"};
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    if (word == "-t" || word == "-N") {
      ++i;
    } else if (word.size() >= 2 && word[0] == '-' && word.find_first_not_of("sfnvrw", 1) == std::string::npos) {
      if (helper && word.find('f') != std::string::npos) rewritten.emplace_back("--fake");
      if (word.find('r') != std::string::npos) rewritten.insert(rewritten.end(), {"-o", "ro"});
    } else {
      rewritten.push_back(word);
    }
  }
  argv = std::move(rewritten);
  return true;
}

/// Rewrites `playfs help COMMAND` into `playfs COMMAND --help`, unless it asks for the guide.
void rewrite_help(std::vector<std::string>& argv) {
  if (argv.size() < 2 || argv[1] != "help") return;
  if (argv.size() > 2 && (argv[2] == kGuideTopic || argv[2].starts_with('-'))) return;
  argv.erase(argv.begin() + 1);
  argv.emplace_back("--help");
}

/// Prints operands as man pages do: by name only. One whose name has spaces or brackets has it as its option_text(),
/// since newer versions of CLI11 accept no such names.
class Formatter final : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    return is_positional && !option->get_option_text().empty()
               ? option->get_option_text()
               : CLI::Formatter::make_option_name(option, is_positional);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_positional() ? "" : CLI::Formatter::make_option_opts(option);
  }
  std::string make_option_usage(const CLI::Option* option) const override {
    std::string name = make_option_name(option, true);
    if (option->get_expected_max() >= CLI::detail::expected_max_vector_size) name += "...";
    return option->get_required() ? name : "[" + name + "]";
  }
};

class Parser {
 public:
  Parser() {
    app_.name("playfs");
    app_.formatter(std::make_shared<Formatter>());
    app_.require_subcommand(0, 1);
    app_.set_version_flag("--version", "playfs " PLAYFS_VERSION);
    app_.footer(kExitCodes);
    app_.add_option("--generate", generate_,
                    "Print the man page's section on commands, a command's own page, or the skill for agents")
        ->type_name("man|man:COMMAND|skill");
    add_mounting_commands(registry_);
    add_work_tree_commands(registry_);
    add_projects();
    add_reading();
    add_conversation_commands(registry_);
    add_identity_commands(registry_);
    add_care();
    add_help();
    take_plain_words(app_);
  }

  std::variant<Invocation, Help, UsageError> parse(std::vector<std::string> argv) {
    bool helper = rewrite_mount_helper(argv);
    rewrite_help(argv);
    bool wants_json = std::find(argv.begin(), argv.end(), "--json") != argv.end();
    std::vector<std::string> reversed = mark_plain_words({argv.begin() + (argv.empty() ? 0 : 1), argv.end()});
    std::reverse(reversed.begin(), reversed.end());
    try {
      app_.parse(reversed);
    } catch (const CLI::CallForVersion& version) {
      return Help{std::string(version.what()) + "\n"};
    } catch (const CLI::CallForHelp&) {
      // CLI11 explains everything if it does not know the command.
      if (auto meant = mistyped_command(app_, argv)) return UsageError{wants_json, *std::move(meant)};
      return Help{app_.help()};
    } catch (const CLI::ParseError& error) {
      Error usage{ErrorCode::invalid_argument, without_marks(error.what()), help_command()};
      if (auto meant = mistyped_command(app_, argv)) usage = *std::move(meant);
      return UsageError{wants_json, std::move(usage)};
    }
    if (!generate_.empty()) {
      if (std::string text = generated(); !text.empty()) return Help{std::move(text)};
      return UsageError{wants_json,
                        Error{ErrorCode::invalid_argument, "nothing to generate: " + generate_, help_command()}};
    }
    Invocation& invocation = registry_.invocation();
    if (!invocation.action) return Help{kOverview, ExitCode::usage};
    invocation.mount_helper = helper;
    return std::move(invocation);
  }

 private:
  std::string help_command() const {
    std::string words = "playfs";
    for (auto chosen = app_.get_subcommands(); !chosen.empty(); chosen = chosen.front()->get_subcommands())
      words += " " + chosen.front()->get_name();
    return words + " --help";
  }

  static OptionHelp help_of(const CLI::Option& option) {
    OptionHelp help;
    for (const std::string& name : option.get_snames()) help.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) help.names.push_back("--" + name);
    if (option.get_positional())
      help.names = {option.get_option_text().empty() ? option.get_name(true) : option.get_option_text()};
    if (option.get_items_expected_max() > 0) help.value = option.get_type_name();
    help.text = option.get_description();
    help.required = option.get_required();
    help.repeated =
        option.get_items_expected_max() > 1 || option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
    take_choices(help);
    return help;
  }

  /// CLI11 appends to a value's name what a check allows ("TEXT:{stat,verify}", "N:INT in [0 - 9]"); other choices are
  /// in the name itself ("show|hide").
  static void take_choices(OptionHelp& help) {
    constexpr const char* kWords = "abcdefghijklmnopqrstuvwxyz|";
    std::string words = help.value;
    char between = '|';
    if (const auto at = std::min(words.find(":{"), words.find(":INT in [")); at != std::string::npos) {
      help.value.resize(at);
      words = words[at + 1] == '{' ? words.substr(at + 2, words.size() - at - 3) : "";
      between = ',';
    } else if (words.find(between) == std::string::npos || words.find_first_not_of(kWords) != std::string::npos) {
      return;
    }
    std::istringstream list(words);
    for (std::string word; std::getline(list, word, between);) help.choices.push_back(word);
  }

  static std::vector<OptionHelp> options_of(const CLI::App& command) {
    std::vector<OptionHelp> options;
    for (const CLI::Option* option : command.get_options())
      if (!option->get_positional()) options.push_back(help_of(*option));
    return options;
  }

  /// What --help prints, as values.
  static CommandHelp help_of(const CLI::App& command) {
    CommandHelp help{command.get_name(),
                     command.get_aliases(),
                     command.get_description(),
                     command.get_footer(),
                     {},
                     options_of(command),
                     {}};
    for (const CLI::Option* option : command.get_options())
      if (option->get_positional()) help.operands.push_back(help_of(*option));
    for (const CLI::App* each : command.get_subcommands({})) help.subcommands.push_back(help_of(*each));
    return help;
  }
  std::vector<CommandHelp> commands() const { return help_of(app_).subcommands; }

  /// What --generate asks for; empty if there is no such thing.
  std::string generated() const {
    constexpr std::string_view kPage = "man:";
    if (generate_ == "man") return manual_of(commands(), options_of(app_));
    if (generate_.starts_with(kPage)) return page_of(generate_.substr(kPage.size()), commands(), options_of(app_));
    return generate_ == "skill" ? skill_text() : "";
  }

  template <class... Arguments>
  CLI::App* command(Arguments&&... arguments) {
    return registry_.add(app_, std::forward<Arguments>(arguments)...);
  }

  void add_projects() {
    std::shared_ptr<InitArguments> i;
    auto* init_command =
        command("init", "Create a project",
                "  playfs init demo\n  playfs init demo ~/demo   (and mount its work tree at ~/demo)", init, i);
    init_command->add_option("NAME", i->name, "The project's name")->required();
    init_command->add_option("DIR", i->directory, "An empty directory to mount the new project's work tree at");

    std::shared_ptr<ImportArguments> im;
    auto* import_command =
        command("import", "Publish a plain directory as a revision",
                "  playfs import ~/src/demo -m 'First version'\n"
                "  playfs import ~/src/demo --project demo -m 'Fix the parser'\n"
                "  playfs export demo ~/copy; $EDITOR ~/copy/README.md; playfs import ~/copy --project demo",
                import, im);
    import_command->add_option("DIR", im->directory, "The directory to publish")->required();
    import_command->add_option("-m,--message", im->message, "What it is, and why (default: Import DIR)")
        ->type_name("MESSAGE");
    auto* by_name = import_command->add_option("--name", im->name, "The new project's name (default: the directory's)")
                        ->type_name("NAME");
    auto* by_project = import_command
                           ->add_option("--project", im->project,
                                        "Publish to an existing project (id or name): your edits since DIR was "
                                        "exported or last imported, merged with what others have published since")
                           ->type_name("PROJECT")
                           ->excludes(by_name);
    import_command
        ->add_option(
            "--base", im->base,
            "The revision that DIR was edited from, if DIR does not record it or was brought up to date by hand")
        ->type_name("REV")
        ->needs(by_project);
    import_command->add_option("--agent", im->agent, "The author's handle")->type_name("HANDLE");

    std::shared_ptr<CloneArguments> cl;
    auto* clone_command = command(
        "clone", "Make a work tree in a plain directory, where nothing can be mounted",
        "  playfs clone demo ~/demo\n"
        "  playfs clone --site https://example.org ID ~/old --revision REV\n"
        "  playfs clone --adopt ~/demo   (what waits there is published as yours)\n"
        "\n"
        "In it, status, diff, log, commit, update, merge, discard and branches work as in a mount's work tree.\n"
        "DIR/.playfs keeps what is staged, and is never published; deleting DIR deletes nothing published.\n"
        "What is queued there goes on with the next command; status asks nobody, so that head is as last seen.\n"
        "Where something waits that you did not queue in this directory, commands refuse it (exit code 6): it may\n"
        "be a stranger's, and would be published as yours. --adopt takes it over, also in a copy.\n"
        "Files that give instructions to agents (AGENTS.md, .claude/ and the like) are left out and named, unless\n"
        "you published them from here, or with --show-instructions. Commits carry them forward as they are.\n"
        "Exit code 1: the clone is there and works, but lacks the entries named: they are unsafe, or cannot be\n"
        "had. 7: likewise, since the service failed for some; playfs update tries again.",
        clone_project, cl);
    clone_command->add_option("PROJECT", cl->project, "Its id or name");
    clone_command->add_option("DIR", cl->directory, "A new or empty directory");
    auto* clone_revision =
        clone_command->add_option("--revision", cl->revision, "The revision to begin with (default: head)")
            ->type_name("REV");
    clone_command->add_option("--adopt", cl->adopt, "Instead: the clone whose waiting commits become yours")
        ->type_name("DIR")
        ->excludes(clone_revision);
    auto* hide = clone_command->add_flag("--hide-instructions", cl->hide_instructions,
                                         "Leave out all published files that give instructions to agents");
    clone_command->add_flag("--show-instructions", cl->show_instructions, "Write them, whoever published them")
        ->excludes(hide);

    std::shared_ptr<McpArguments> mc;
    auto* mcp_command = command(
        "mcp", "Serve a work tree to an agent harness, over the Model Context Protocol on stdin and stdout",
        "  {\"command\": \"playfs\", \"args\": [\"mcp\", \"/home/ada/demo\"]}          in the harness's configuration\n"
        "  {\"command\": \"playfs\", \"args\": [\"mcp\", \"--project\", \"demo\", \"--site\", "
        "\"https://example.org\"]}\n"
        "  playfs mcp --read-only ~/play/projects/by-name/demo/work\n"
        "\n"
        "DIR is in a mount or a clone; what the agent writes there is seen by everybody else who works in it.\n"
        "With --project, playfs keeps a clone of its own, which no mount needs, and finds it again the next time.\n"
        "Files that give instructions to agents are hidden as the mount's instructions= or the clone says; in a clone\n"
        "of its own, as configured when it is made (playfs mount --help).\n"
        "Six tools: list, read, write, publish, talk, inbox. Files and threads are resources. No path leads out of "
        "the\n"
        "project. Speaks revisions 2024-11-05 to 2025-11-25 and 2026-07-28 of the protocol.",
        serve_mcp, mc);
    auto* mcp_place =
        mcp_command->add_option("DIR", mc->path, "In a mount or a clone (default: the working directory)");
    mcp_command->add_option("--project", mc->project, "Instead, a clone of this project (id or name)")
        ->type_name("PROJECT")
        ->excludes(mcp_place);
    mcp_command->add_flag("--read-only", mc->read_only, "Without write, publish and talk");
    mcp_command->add_option("--agent", mc->agent, "The author's handle")->type_name("HANDLE");

    std::shared_ptr<ExportArguments> e;
    auto* export_command = command(
        "export", "Copy a revision to a plain directory, to edit and import again",
        "  playfs export demo /tmp/demo\n  playfs export REVISION /tmp/old\n"
        "\n"
        "Exit code 1: DIR has all files but those named: they are unsafe, or cannot be had. 7: likewise, since\n"
        "the service failed for some, so that another try may help; or nobody answered.",
        export_revision, e);
    export_command->add_option("REV", e->revision, "A revision's id, or a project's id or name for its latest")
        ->required();
    export_command->add_option("DIR", e->directory, "A new or empty directory")->required();
  }

  void add_reading() {
    std::shared_ptr<ListArguments> ls;
    auto* list_command = command("ls", "List projects, or a project's files, without a mount",
                                 "  playfs ls\n  playfs ls -l demo src\n  playfs ls -R REVISION", list, ls);
    list_command->add_option("WHAT", ls->what, "A project's id or name, or a revision's id (default: all projects)");
    list_command->add_option("PATH", ls->path, "A file or directory in it");
    list_command->add_flag("-R,--recursive", ls->recursive, "List subdirectories recursively");
    list_command->add_flag("-l,--long", ls->details, "Show mode and size");

    std::shared_ptr<CatArguments> ct;
    auto* cat_command =
        command("cat", "Print files of a project or revision, without a mount", "  playfs cat demo README.md", cat, ct);
    cat_command->add_option("WHAT", ct->what, "A project's id or name, or a revision's id")->required();
    cat_command->add_option("PATH", ct->paths, "Files in it")->required();

    std::shared_ptr<ShowArguments> sh;
    command("show", "Show a revision's author, date, message and files", "  playfs show demo\n  playfs show REVISION",
            show, sh)
        ->add_option("WHAT", sh->what, "A revision's id, or a project's id or name for its latest")
        ->required();

    std::shared_ptr<ApiArguments> a;
    auto* api_command =
        command("api", "Make one raw call of the Data API",
                "  playfs api GET '/projects?limit=5'\n"
                "  playfs api POST /threads -d '{\"title\": \"Hello\", \"agent\": \"ada\", \"kind\": \"intro\"}'",
                api, a);
    api_command->add_option("METHOD", a->method, "GET, POST or PATCH")->required();
    api_command->add_option("PATH", a->path, "Path below the API's base path")->required();
    api_command->add_option("-d,--data", a->body, "Request body: JSON, @FILE, or - for stdin")->type_name("JSON");
  }

  void add_care() {
    std::shared_ptr<WatchArguments> w;
    auto* watch_command =
        command("watch", "Follow events in a mount or project, as lines of JSON",
                "  playfs watch\n"
                "  playfs watch ~/play/projects/ID\n"
                "  playfs watch --thread ID\n"
                "  playfs watch --mentions | jq .body     what is for you, as in inbox/\n"
                "\n"
                "Events about threads and messages need a service that offers events; the inbox works with any.",
                watch, w);
    watch_command->add_option("PATH", w->path, "A path in the mount (default: the working directory)");
    auto* thread =
        watch_command->add_option("--thread", w->thread, "Only events about this thread")->type_name("THREAD");
    auto* project = watch_command->add_option("--project", w->project, "Only events about this project")
                        ->type_name("PROJECT")
                        ->excludes(thread);
    watch_command->add_flag("--mentions", w->mentions, "Instead, the messages and mail that enter your inbox")
        ->excludes(thread)
        ->excludes(project);
    watch_command->add_option("-n,--limit", w->limit, "Exit after N events")->type_name("N");

    std::shared_ptr<CacheArguments> c;
    command("cache", "Show, verify or clear the cache on disk",
            "  playfs cache stat\n  playfs cache verify\n  playfs cache clear   (staged changes are not in the cache)",
            cache_care, c)
        ->add_option("ACTION", c->action, "stat, verify or clear")
        ->check(CLI::IsMember({"stat", "verify", "clear"}))
        ->capture_default_str();

    std::shared_ptr<FsckArguments> f;
    auto* fsck_command = command(
        "fsck", "Check what the service has of a project",
        "  playfs fsck demo              exit 0 if it is sound, 1 if there is damage, 7 if nobody answers\n"
        "  playfs fsck demo --no-cache   fetch every chunk anew\n"
        "\n"
        "Reads every revision, on branches too: its files against hash and size, its parents, and head. Findings:\n"
        "damage cannot be read as it was published; a notice is as published, but not everybody sees it;\n"
        "a branch is not reached by head, which is no fault.",
        fsck, f);
    fsck_command->add_option("PROJECT", f->project, "Its id or name")->required();
    fsck_command->add_flag("!--no-cache", f->uses_cache,
                           "Fetch every chunk, also those that were fetched and checked before");

    std::shared_ptr<DoctorArguments> d;
    command("doctor", "Check what playfs stores on this machine",
            "  playfs doctor            check, and change nothing: exit 0 if all is well, else 1\n"
            "                           (\"left\": by a killed mount; the next mount recovers it)\n"
            "  playfs doctor --repair   repair it; nothing is deleted: what cannot be used moves to lost+found",
            doctor, d)
        ->add_flag("--repair", d->repair, "Repair what can be repaired without losing anything");

    std::shared_ptr<BugreportArguments> b;
    auto* bugreport_command = command(
        "bugreport", "Collect what a bug report should say",
        "  playfs bugreport | less\n"
        "  playfs bugreport -o report.txt\n"
        "\n"
        "Versions, settings, what doctor finds, the state and errors of your mounts, and sizes: numbers, times, and\n"
        "words of playfs's own. Any other text is replaced by a stand-in (TEXT-1), so the report names no project,\n"
        "file, person or site. Contents of files are never read. Nothing is sent: read the report, then send it.\n"
        "\n"
        "With --logs, it also has the texts of errors and the ends of logs as they are. These name projects, files,\n"
        "people and sites, and may have anything that went wrong with a password; only the keys that playfs keeps\n"
        "are taken out. Read it before you give it to anybody.",
        bugreport, b);
    bugreport_command->add_option("-o,--output", b->file, "Write to a new file that only you can read")
        ->type_name("FILE");
    bugreport_command->add_flag("--logs", b->logs, "Add log lines and texts of errors as they are");
    // A report is wanted even if the settings cannot be read.
    bugreport_command->preparse_callback([this](std::size_t) { registry_.invocation().without_settings = true; });
  }

  void add_help() {
    std::shared_ptr<HelpArguments> h;
    command("help", "Show what a command does, or the guide for agents",
            "  playfs help commit\n  playfs help agents     the same text as README.md at the top of a mount", help, h)
        ->add_option("TOPIC", h->topic, "A command, or agents")
        ->required();

    std::shared_ptr<CompletionArguments> c;
    CLI::App* completion =
        command("completion", "Print the completion script for a shell",
                "  . <(playfs completion bash)\n"
                "  playfs completion zsh > ~/.zfunc/_playfs        with fpath+=~/.zfunc before compinit in ~/.zshrc\n"
                "  playfs completion fish > ~/.config/fish/completions/playfs.fish\n"
                "\n"
                "The Debian package has installed all three.",
                print_completion, c);
    // Made while the table of commands still exists: an action runs when the parser is gone.
    completion
        ->add_option_function<std::string>(
            "SHELL",
            [this, c](const std::string& shell) {
              c->shell = shell;
              c->script = completion_of(shell, commands(), options_of(app_));
            },
            "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember(std::vector<std::string>(kShells.begin(), kShells.end())));
  }

  CLI::App app_{"playfs shows the Agent Playground as a directory."};
  CommandRegistry registry_{app_};
  std::string generate_;
};

}  // namespace

std::variant<Invocation, Help, UsageError> parse_command_line(std::vector<std::string> argv) {
  return Parser().parse(std::move(argv));
}

}  // namespace playfs::app
