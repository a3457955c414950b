#include "app/run.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "app/command_line.h"
#include "app/commands/commands.h"
#include "base/shell.h"
#include "runtime/descriptors.h"

namespace playfs::app {

namespace {

/// No mark tells `login` its service (Marks), so the hint has to, in a tree of another one.
Error with_site_to_sign_in(Error error, const CommandContext& context) {
  constexpr std::string_view login = "playfs login";
  if (error.code != ErrorCode::unauthorized || !error.hint.starts_with(login) ||
      error.hint.find("--site") != std::string::npos)
    return error;
  const auto of_tree = context.source(), own = context.source(Marks::do_not_count);
  if (of_tree && own && of_tree->text != own->text)
    error.hint.insert(login.size(), " --site " + shell_word(of_tree->text));
  return error;
}

Result<ExitCode> run_invocation(const Invocation& invocation, runtime::Io& io, Output& out) {
  PLAYFS_TRY(runtime::Places places, runtime::find_places(io));
  runtime::Settings settings;
  if (!invocation.without_settings) {
    std::vector<std::string> warnings;
    PLAYFS_TRY(settings, runtime::load_settings(io, places, warnings));
    for (const std::string& warning : warnings) out.note("playfs: " + safe(warning));
  }
  if (invocation.site) PLAYFS_CHECK(settings.set(runtime::Settings::Layer::flag, "site", *invocation.site));
  CommandContext context{io, out, std::move(places), std::move(settings)};
  auto result = invocation.action(context);
  if (!result) return fail(with_site_to_sign_in(std::move(result).error(), context));
  return result;
}

}  // namespace

int run(std::vector<std::string> argv, runtime::Io& io) {
  auto parsed = parse_command_line(std::move(argv));
  if (const auto* help = std::get_if<Help>(&parsed)) {
    (help->code == ExitCode::done ? io.out : io.err) << help->text << std::flush;
    return static_cast<int>(help->code);
  }
  if (const auto* usage = std::get_if<UsageError>(&parsed)) {
    Output(io, usage->json).error(usage->error);
    return static_cast<int>(ExitCode::usage);
  }
  const auto& invocation = std::get<Invocation>(parsed);
  Output out(io, invocation.json);
  auto result = run_invocation(invocation, io, out);
  ExitCode code = result ? *result : out.error(result.error());
  io.out.flush();
  if (!io.out && code == ExitCode::done) code = ExitCode::failed;  // a full disk, a closed pipe
  if (invocation.mount_helper && code != ExitCode::done) code = ExitCode::mount_failed;
  return static_cast<int>(code);
}

int run_in_this_process(int argc, char** argv) {
  runtime::hold_standard_streams();
  std::ios::sync_with_stdio(false);
  // Progress is drawn by another thread, which must not flush what this one is printing.
  std::cerr.tie(nullptr);
  SystemClock clock;
  SystemRandom random;
  runtime::Io io{std::cin, std::cout, std::cerr, clock, random, {}, {}, isatty(0) == 1, isatty(1) == 1, isatty(2) == 1};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    if (auto equals = text.find('='); equals != std::string_view::npos)
      io.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  winsize size{};
  for (int fd : {STDOUT_FILENO, STDERR_FILENO})
    if (isatty(fd) == 1 && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) io.columns = size.ws_col;
  std::error_code unknown;
  io.directory = std::filesystem::current_path(unknown).string();
  if (unknown) io.directory = "/";
  return run(std::vector<std::string>(argv, argv + argc), io);
}

}  // namespace playfs::app
