// playfs bugreport: what its maintainers need to find a bug. By default without a text that is not playfs's own. Sends
// nothing.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "app/bug_report/collected.h"
#include "app/commands/commands.h"
#include "app/deferred_signals.h"
#include "base/fd.h"
#include "base/shell.h"
#include "runtime/probe.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

constexpr const char* kWithoutTexts =
    "Names, ids, paths, addresses and messages are replaced: TEXT-1 is the same text wherever it occurs. Nothing was "
    "sent.";
constexpr const char* kWithTexts =
    "The section texts has logs and messages as they are. They name projects, files, people and sites, and may have "
    "secrets: only the keys that playfs keeps are taken out. Read it before you give it to anybody. Nothing was sent.";

Error exists_already(const std::string& path) {
  return {ErrorCode::already_exists, path + " exists already", "playfs bugreport -o OTHER"};
}

/// Fails early if the file cannot be created later.
Status check_new_file(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  if (runtime::look_at(parent).state == runtime::Probe::State::silent) return runtime::silence_of(parent);
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) return fail(exists_already(path));
  if (errno != ENOENT || access(parent.c_str(), W_OK | X_OK) != 0)
    return fail(error_from_errno(errno, "create " + path));
  return {};
}

/// Never overwrites, and never follows a link that somebody has put there. The file remains only if it is complete.
Status write_new_file(const std::string& path, std::string_view text) {
  const DeferredSignals whole;
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file && errno == EEXIST) return fail(exists_already(path));
  if (!file) return fail(error_from_errno(errno, "create " + path));
  Status written = write_all(file.get(), text);
  if (!written) written = fail(written.error().while_doing(path));
  else if (fsync(file.get()) != 0) written = fail(error_from_errno(errno, "write " + path));
  if (!written) unlink(path.c_str());
  return written;
}

std::string as_text(const JsonObject& report) {
  std::string text;
  for (const auto& [name, section] : report)
    text +=
        section.string() != nullptr ? *section.string() + "\n" : "\n== " + name + "\n" + wire::to_pretty_text(section);
  return text;
}

}  // namespace

Result<ExitCode> bugreport(CommandContext& context, const BugreportArguments& arguments) {
  if (arguments.file && arguments.file->empty())
    return fail(ErrorCode::invalid_argument, "-o needs the name of a file", "playfs bugreport -o report.txt");
  const std::string path = arguments.file ? context.io.absolute(*arguments.file) : "";
  // The working directory may be in a mount that hangs, and libraries open files in it.
  if (chdir("/") != 0) return fail(error_from_errno(errno, "chdir /"));
  if (!path.empty()) PLAYFS_CHECK(check_new_file(path));
  const char* about = arguments.logs ? kWithTexts : kWithoutTexts;
  PLAYFS_TRY(CollectedReport collected, collect_report(context, arguments.logs));
  JsonObject report{{"about", about}};
  for (auto& [name, section] : collected.facts) report.append(name, section);
  if (arguments.logs) report.append("texts", std::move(collected.texts));

  std::string next = std::string("playfs bugreport ") + (arguments.logs ? "--logs " : "") + "| less";
  if (!path.empty()) {
    PLAYFS_CHECK(
        write_new_file(path, context.out.json() ? wire::to_pretty_text(Json(std::move(report))) : as_text(report)));
    context.out.line(safe(path));
    context.out.document(JsonObject{{"file", path}});
    next = "less " + safe(shell_word(path));
  } else {
    if (!context.out.json()) context.out.line(as_text(report));
    context.out.document(std::move(report));
  }
  context.io.out.flush();
  if (!context.io.out) {
    context.out.note("playfs: the report could not be written to standard output: disk full, or a closed pipe");
    context.out.note("Try: playfs bugreport -o FILE");
    return ExitCode::failed;
  }
  context.out.note(std::string(about) + "\nTo read it: " + next);
  return ExitCode::done;
}

}  // namespace playfs::app
