// playfs diff: what is staged, against the base of the work tree.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/mounted.h"
#include "app/text_diff.h"
#include "base/fd.h"

namespace playfs::app {

namespace {

constexpr std::size_t kLargestFile = 256 << 20;
constexpr std::size_t kLongestTarget = 4096;

/// nullopt where there is no file of that name.
Result<std::optional<DiffSide>> read_side(const std::string& path) {
  struct stat attributes {};
  if (lstat(path.c_str(), &attributes) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<DiffSide>();
    return fail(error_from_errno(errno, "stat " + path));
  }
  if (S_ISLNK(attributes.st_mode)) {
    std::string target(kLongestTarget, '\0');
    ssize_t size = readlink(path.c_str(), target.data(), target.size());
    if (size < 0) return fail(error_from_errno(errno, "read the link " + path));
    target.resize(static_cast<std::size_t>(size));
    return std::optional<DiffSide>(DiffSide{"120000", std::move(target)});
  }
  // A directory in a file's place: the files below it are changes of their own.
  if (!S_ISREG(attributes.st_mode)) return std::optional<DiffSide>();
  PLAYFS_TRY(std::string content, read_file(path, kLargestFile));
  return std::optional<DiffSide>(DiffSide{(attributes.st_mode & 0111) != 0 ? "100755" : "100644", std::move(content)});
}

struct Change {
  std::string path;
  std::string kind;
};

std::vector<Change> changes_in(const JsonObject& status) {
  std::vector<Change> changes;
  if (const Json::Array* staged = array_of(status, "staged"))
    for (const Json& item : *staged)
      if (const JsonObject* fields = item.object())
        changes.push_back({text_of(*fields, "path"), text_of(*fields, "change")});
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.path < b.path; });
  // A path that is pending and was changed again is listed twice.
  auto same = [](const Change& a, const Change& b) { return a.path == b.path; };
  changes.erase(std::unique(changes.begin(), changes.end(), same), changes.end());
  return changes;
}

bool is_asked_for(const std::string& path, const std::vector<std::string>& asked) {
  return asked.empty() || std::any_of(asked.begin(), asked.end(), [&](const std::string& prefix) {
           return prefix.empty() || path == prefix || (path.starts_with(prefix) && path[prefix.size()] == '/');
         });
}

void print(Output& out, const FileDiff& diff) {
  bool colour = out.colour();
  auto line = [&](const char* code, const std::string& text) {
    // A patch in a pipe has to be the bytes as they are; only a terminal could be misled by them.
    if (!colour) return out.line(out.is_terminal() ? safe(text) : text);
    out.line(*code != 0 ? code + safe(text) + "\x1b[m" : safe(text));
  };
  for (const std::string& text : diff.header) line("\x1b[1m", text);
  for (const DiffLine& one : diff.lines) {
    switch (one.kind) {
      case DiffLine::Kind::hunk: line("\x1b[36m", one.text); break;
      case DiffLine::Kind::added: line("\x1b[32m", one.text); break;
      case DiffLine::Kind::removed: line("\x1b[31m", one.text); break;
      case DiffLine::Kind::context:
      case DiffLine::Kind::note: line("", one.text); break;
    }
  }
}

Json as_json(const FileDiff& diff, const std::string& kind) {
  std::string text;
  for (const std::string& line : diff.header) text += line + "\n";
  for (const DiffLine& line : diff.lines) text += line.text + "\n";
  return JsonObject{{"path", diff.path},   {"change", kind},          {"binary", diff.binary},
                    {"added", diff.added}, {"removed", diff.removed}, {"diff", text}};
}

}  // namespace

Result<ExitCode> diff(Context& context, const DiffArguments& arguments) {
  std::vector<std::string> asked;
  PLAYFS_TRY(MountedPlace place,
             find_project_at(context.io.absolute(arguments.paths.empty() ? "." : arguments.paths.front())));
  for (const std::string& path : arguments.paths) {
    PLAYFS_TRY(MountedPlace other, find_project_at(context.io.absolute(path)));
    if (other.work != place.work || !other.in_work)
      return fail(ErrorCode::invalid_argument, path + " is not in the work tree " + place.work, "playfs diff");
    asked.push_back(*other.in_work);
  }
  PLAYFS_TRY(JsonObject status, read_json_object(place.project_directory + "/status.json"));
  std::string base = text_of(status, "base");
  Json::Array files;
  std::uint64_t added = 0, removed = 0, count = 0;
  for (const Change& change : changes_in(status)) {
    if (!is_asked_for(change.path, asked)) continue;
    std::optional<DiffSide> before;
    if (!base.empty()) {
      PLAYFS_TRY(before, read_side(place.project_directory + "/revisions/" + base + "/" + change.path));
    }
    PLAYFS_TRY(auto after, read_side(place.work + "/" + change.path));
    if (!before && !after) continue;
    PLAYFS_TRY(FileDiff file, diff_file(change.path, before, after));
    ++count;
    added += file.added;
    removed += file.removed;
    if (context.out.json()) files.push_back(as_json(file, change.kind));
    else if (arguments.stat)
      context.out.line(file.binary ? fmt::format(" {} | binary", safe(file.path))
                                   : fmt::format(" {} | +{} -{}", safe(file.path), file.added, file.removed));
    else print(context.out, file);
  }
  if (arguments.stat && count > 0)
    context.out.line(
        fmt::format(" {} {} changed, {} added, {} removed", count, count == 1 ? "file" : "files", added, removed));
  context.out.document(JsonObject{
      {"project", place.project}, {"base", base}, {"added", added}, {"removed", removed}, {"files", std::move(files)}});
  return ExitCode::done;
}

}  // namespace playfs::app
