// playfs bugreport: what its maintainers need to find a bug, without secrets. Sends nothing.
#include <fcntl.h>

#include <cctype>
#include <cerrno>

#include "app/bug_report/collected.h"
#include "app/commands/commands.h"
#include "base/fd.h"
#include "base/shell.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

/// "KEY (3), PATH (1)": as they are called in the report, and how many.
std::string words_for(const JsonObject& removed) {
  std::string words;
  for (const auto& [kind, count] : removed) {
    std::string stand_in = kind;
    for (char& c : stand_in) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    words += (words.empty() ? "" : ", ") + stand_in + " (" + std::to_string(count.integer().value_or(0)) + ")";
  }
  return words.empty() ? "nothing" : words;
}

/// Sections with headings; lists of texts as lines, everything else as JSON.
std::string as_text(const JsonObject& report) {
  std::string text;
  for (const auto& [name, section] : report) text += "== " + name + "\n" + wire::to_pretty_text(section) + "\n";
  return text;
}

/// Never overwrites, and never follows a link that somebody has put there.
Status write_new_file(const std::string& path, std::string_view text) {
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file && errno == EEXIST)
    return fail(ErrorCode::already_exists, path + " exists already", "playfs bugreport -o OTHER");
  if (!file) return fail(error_from_errno(errno, "create " + path));
  return write_all(file.get(), text);
}

}  // namespace

Result<ExitCode> bugreport(CommandContext& context, const BugreportArguments& arguments) {
  Redaction redaction(arguments.paths);
  JsonObject report = collect_report(context, redaction);
  JsonObject removed = redaction.removed();
  const std::string words = "Taken out, with stand-ins in its place: " + words_for(removed);
  report.append("removed", std::move(removed));
  if (!arguments.file.empty()) {
    const std::string path = context.io.absolute(arguments.file);
    PLAYFS_CHECK(write_new_file(
        path, context.out.json() ? wire::to_pretty_text(Json(std::move(report))) : words + "\n" + as_text(report)));
    context.out.line(path);
    context.out.document(JsonObject{{"file", path}});
  } else if (context.out.json()) {
    context.out.document(std::move(report));
  } else {
    context.out.line(as_text(report));
  }
  context.out.note(words + ".");
  context.out.note("Nothing was sent. Read it before you give it to anybody: " +
                   (arguments.file.empty() ? "playfs bugreport | less" : "less " + safe(shell_word(arguments.file))));
  return ExitCode::done;
}

}  // namespace playfs::app
