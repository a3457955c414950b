// playfs mcp: a project's work tree and the site's threads for an agent harness, over the Model Context Protocol.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "app/author.h"
#include "app/commands/commands.h"
#include "app/mcp/project_features.h"
#include "app/mcp/tool_list.h"
#include "app/mounted.h"
#include "base/fd.h"
#include "mcp/server.h"
#include "runtime/hardening.h"

namespace playfs::app {

namespace {

/// Interrupts system calls of an answer that is no longer wanted.
constexpr int kNudge = SIGUSR1;

void prepare_signals() {
  runtime::outlive_readers();
  struct sigaction nothing {};
  nothing.sa_handler = [](int) {};  // without SA_RESTART: blocking calls return EINTR
  sigaction(kNudge, &nothing, nullptr);
}

/// Takes over stdout for the client. Whatever else this process prints goes to stderr, since stdout carries only
/// protocol messages.
Result<UniqueFd> take_stdout() {
  UniqueFd out(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!out || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return fail(error_from_errno(errno, "take over stdout"));
  return out;
}

Result<std::unique_ptr<Workplace>> workplace_for(const CommandContext& context, const McpArguments& arguments) {
  if (arguments.project) return std::make_unique<Workplace>(*arguments.project);
  auto place = find_project_at(context.io.absolute(arguments.path));
  if (place) return std::make_unique<Workplace>(std::move(*place));
  Error error = std::move(place).error();
  if (error.code == ErrorCode::not_found) error.hint = "playfs mcp --project PROJECT, which keeps a clone of its own";
  return fail(std::move(error));
}

}  // namespace

Result<ExitCode> serve_mcp(CommandContext& context, const McpArguments& arguments) {
  if (arguments.agent) PLAYFS_CHECK(check_handle(*arguments.agent));
  PLAYFS_TRY(const auto workplace, workplace_for(context, arguments));
  prepare_signals();
  PLAYFS_TRY(const UniqueFd out, take_stdout());
  ProjectFeatures features(context, *workplace, arguments.agent.value_or(""), arguments.read_only);
  mcp::Server server({"playfs", PLAYFS_VERSION, kMcpInstructions}, features, STDIN_FILENO, out.get(), kNudge);
  PLAYFS_TRY(const bool has_ended, server.run());
  // A call still waits for a disk or for the service. The next command continues what is journalled.
  if (!has_ended) std::_Exit(static_cast<int>(ExitCode::done));
  return ExitCode::done;
}

}  // namespace playfs::app
