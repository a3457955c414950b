// The commands: their arguments and functions, one source file per command.
//
// A command prints through context.out and returns its exit code; run() reports a returned error, once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/command_context.h"
#include "app/commands/store_place.h"
#include "app/exit_code.h"
#include "base/result.h"

namespace playfs::app {

// Mounting and serving.

struct MountArguments {
  std::vector<std::string> places;   ///< [SRC] DIR
  std::vector<std::string> options;  ///< each a comma-separated list, as after -o
  bool foreground = false;
  bool fake = false;     ///< mount(8)'s -f: check everything, mount nothing
  bool announce = true;  ///< false: another command prints the document
};
Result<ExitCode> mount(CommandContext& context, const MountArguments& arguments);

struct UmountArguments {
  std::string directory;
  bool wait = false;
};
Result<ExitCode> umount(CommandContext& context, const UmountArguments& arguments);

struct RunArguments {
  std::string project;               ///< its id or name
  std::vector<std::string> command;  ///< with its arguments
  bool commit = false;               ///< if the command succeeds
  std::string message;               ///< of the commit
  std::optional<std::string> agent;
  std::optional<std::string> instructions;  ///< "show" or "hide"
  bool read_only = false;
};
/// Returns the command's own exit code, unless something of ours failed.
Result<ExitCode> run_command(CommandContext& context, const RunArguments& arguments);

struct ServeArguments {
  std::vector<std::string> words;  ///< "backup FILE", "copy FROM TO", …, or nothing
  std::string message;             ///< of `answer`
  std::string state;               ///< the mail's, with `answer`
  bool undo = false;               ///< of `hide`
  std::string listen = "127.0.0.1:8787";
  std::string store;                 ///< a directory, or postgresql://…; empty: the default local playground
  std::string limits = "spec";       ///< "spec" (those of the API document), "off", or a file of limits
  std::vector<std::string> hosts;    ///< names that the site is reached by
  std::vector<std::string> proxies;  ///< whose X-Forwarded-For is trusted
  std::string steward_key;           ///< a file with the key of the domain steward; empty: there is none
  std::string access_log;            ///< a file; empty: none
  std::string smtp;                  ///< "smtp://USER@HOST:PORT"; empty: codes go into an outbox
  std::string smtp_password;         ///< a file with the password
  std::string mail_from;             ///< the sender address of codes
  int drain = 0;                     ///< seconds, from the signal to stop until it stops to accept
};
Result<ExitCode> serve(CommandContext& context, const ServeArguments& arguments);

/// `serve SUBCOMMAND`: maintains a store, beside the servers on it.
Result<ExitCode> care_for_store(CommandContext& context, const ServeArguments& arguments, const StorePlace& place);

// The work tree around a path.

struct StatusArguments {
  std::string path = ".";
};
Result<ExitCode> status(CommandContext& context, const StatusArguments& arguments);

struct DiffArguments {
  std::vector<std::string> words;  ///< REV, REV..REV or none, then paths (none: all); what exists is a path
  bool stat = false;
  bool pager = true;
};
Result<ExitCode> diff(CommandContext& context, const DiffArguments& arguments);

struct LogArguments {
  std::optional<std::string> path;     ///< only revisions that changed it; none: all of those of the project here
  std::string text;                    ///< unless empty: only those that changed how often it occurs
  std::optional<std::string> project;  ///< without a mount: whose log
  std::uint64_t limit = 0;             ///< 0: all
  bool all = false;                    ///< looks for branches first
  bool oneline = false;
  bool graph = true;
  bool pager = true;
};
Result<ExitCode> log(CommandContext& context, const LogArguments& arguments);

struct CommitArguments {
  std::string path = ".";
  std::string message;
  std::optional<std::string> agent;
  bool wait = true;
  bool merge = true;
  bool resolved = false;  ///< conflicts are resolved as they are
  bool dry_run = false;
  bool cancel = false;  ///< instead: cancels what is being published
};
Result<ExitCode> commit(CommandContext& context, const CommitArguments& arguments);
/// For a command that has used stdout itself, and ends the mount afterwards: only messages, and the outcome or the
/// error in `document`. `after_branch`: what to type if it became a branch.
Result<ExitCode> commit_after_run(CommandContext& context, const CommitArguments& arguments,
                                  std::string_view after_branch, JsonObject& document);

struct DiscardArguments {
  std::vector<std::string> paths;  ///< none: the working directory
};
Result<ExitCode> discard(CommandContext& context, const DiscardArguments& arguments);

struct CheckpointArguments {
  std::string message;
  std::string path = ".";
};
Result<ExitCode> checkpoint(CommandContext& context, const CheckpointArguments& arguments);

struct CheckpointListArguments {
  std::string path = ".";
};
Result<ExitCode> list_checkpoints(CommandContext& context, const CheckpointListArguments& arguments);

struct CheckpointDropArguments {
  std::vector<std::string> ids;
};
Result<ExitCode> drop_checkpoints(CommandContext& context, const CheckpointDropArguments& arguments);

struct CheckpointRestoreArguments {
  std::string id;
  std::vector<std::string> paths;  ///< none: everything in the work tree of the working directory
};
Result<ExitCode> restore_checkpoint(CommandContext& context, const CheckpointRestoreArguments& arguments);

struct BlameArguments {
  std::string path;
  std::optional<std::string> revision;  ///< none: the work tree's version
  bool pager = true;
};
Result<ExitCode> blame(CommandContext& context, const BlameArguments& arguments);

struct RestoreArguments {
  std::vector<std::string> paths;
  std::string revision = "base";
};
Result<ExitCode> restore(CommandContext& context, const RestoreArguments& arguments);

struct RevertArguments {
  std::string revision;
  std::string path = ".";
};
Result<ExitCode> revert(CommandContext& context, const RevertArguments& arguments);

struct UpdateArguments {
  std::string path = ".";
};
Result<ExitCode> update(CommandContext& context, const UpdateArguments& arguments);

struct MergeArguments {
  std::string revision;
  std::string path = ".";
};
Result<ExitCode> merge(CommandContext& context, const MergeArguments& arguments);

struct BranchesArguments {
  std::string path = ".";
};
Result<ExitCode> branches(CommandContext& context, const BranchesArguments& arguments);

// Creating, importing, exporting and cloning projects.

struct InitArguments {
  std::string name;
  std::optional<std::string> directory;  ///< where to mount the new project
};
Result<ExitCode> init(CommandContext& context, const InitArguments& arguments);

struct ImportArguments {
  std::string directory;
  std::optional<std::string> name;     ///< of the project to create; none: the directory's
  std::optional<std::string> project;  ///< or an existing one, by id or name
  std::optional<std::string> base;     ///< the revision of it that the directory holds, if nothing else says so
  std::optional<std::string> message;
  std::optional<std::string> agent;
};
Result<ExitCode> import(CommandContext& context, const ImportArguments& arguments);

struct ExportArguments {
  std::string revision;
  std::string directory;
};
Result<ExitCode> export_revision(CommandContext& context, const ExportArguments& arguments);

struct CloneArguments {
  std::string project;  ///< its id or name
  std::string directory;
  std::optional<std::string> revision;  ///< none: head
  std::string adopt = {};               ///< instead of these: the clone whose queue is taken over
  bool hide_instructions = false;       ///< whoever published them
  bool show_instructions = false;
};
Result<ExitCode> clone_project(CommandContext& context, const CloneArguments& arguments);

// For agents.

struct McpArguments {
  std::string path = ".";              ///< in a mount or a clone
  std::optional<std::string> project;  ///< instead: a clone of this project in the state directory
  std::optional<std::string> agent;
  bool read_only = false;
};
Result<ExitCode> serve_mcp(CommandContext& context, const McpArguments& arguments);

// Reading without a mount.

struct ListArguments {
  std::string what;  ///< empty: the projects
  std::string path;
  bool recursive = false;
  bool details = false;
};
Result<ExitCode> list(CommandContext& context, const ListArguments& arguments);

struct CatArguments {
  std::string what;
  std::vector<std::string> paths;
};
Result<ExitCode> cat(CommandContext& context, const CatArguments& arguments);

struct ShowArguments {
  std::string what;
};
Result<ExitCode> show(CommandContext& context, const ShowArguments& arguments);

struct ApiArguments {
  std::string method;
  std::string path;                 ///< below the API's base path: "/projects?limit=5"
  std::optional<std::string> body;  ///< JSON; "@FILE" and "-" (stdin) are read
};
Result<ExitCode> api(CommandContext& context, const ApiArguments& arguments);

struct WatchArguments {
  std::string path = ".";
  std::optional<std::string> thread;   ///< only events about this thread
  std::optional<std::string> project;  ///< only events about this project; none: that of the path, if any
  bool mentions = false;               ///< instead: what enters the inbox
  std::uint64_t limit = 0;             ///< 0: until the mount ends
};
Result<ExitCode> watch(CommandContext& context, const WatchArguments& arguments);

// Identity.

struct LoginArguments {
  std::string email;                       ///< empty: asked for
  std::optional<std::string> code;         ///< of an earlier mail; "-": from stdin. None: requests one
  std::optional<std::string> agent;        ///< the handle to write under
  std::optional<std::string> account_url;  ///< the account service; none: the site itself, or as configured
};
Result<ExitCode> login(CommandContext& context, const LoginArguments& arguments);

struct LogoutArguments {};
Result<ExitCode> logout(CommandContext& context, const LogoutArguments& arguments);

struct WhoamiArguments {
  std::optional<std::string> agent;
};
Result<ExitCode> whoami(CommandContext& context, const WhoamiArguments& arguments);

// Maintenance.

struct CacheArguments {
  std::string action = "stat";  ///< "stat", "verify" or "clear"
};
Result<ExitCode> cache_care(CommandContext& context, const CacheArguments& arguments);

struct HelpArguments {
  std::string topic;
};
Result<ExitCode> help(CommandContext& context, const HelpArguments& arguments);

struct CompletionArguments {
  std::string shell;   ///< one of kShells
  std::string script;  ///< its script
};
Result<ExitCode> print_completion(CommandContext& context, const CompletionArguments& arguments);

struct FsckArguments {
  std::string project;  ///< its id or name
  bool uses_cache = true;
};
Result<ExitCode> fsck(CommandContext& context, const FsckArguments& arguments);

struct DoctorArguments {
  bool repair = false;  ///< false: only checks
};
Result<ExitCode> doctor(CommandContext& context, const DoctorArguments& arguments);

struct BugreportArguments {
  std::optional<std::string> file;  ///< nullopt: stdout
  bool logs = false;                ///< adds texts as they are
};
Result<ExitCode> bugreport(CommandContext& context, const BugreportArguments& arguments);

}  // namespace playfs::app
