// playfs diff: compares the work tree with its base, or other pairs of revisions.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/mounted.h"
#include "app/pager.h"
#include "app/renames.h"
#include "app/text_diff.h"
#include "app/tree_compare.h"
#include "base/fd.h"
#include "model/path.h"

namespace playfs::app {

namespace {

constexpr std::size_t kLargestFile = 256 << 20;
constexpr std::size_t kLongestTarget = 4096;

/// nullopt if there is no file of that name.
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
  // A directory in a file's place: the files below it are separate changes.
  if (!S_ISREG(attributes.st_mode)) return std::optional<DiffSide>();
  PLAYFS_TRY(std::string content, read_file(path, kLargestFile));
  return std::optional<DiffSide>(DiffSide{(attributes.st_mode & 0111) != 0 ? "100755" : "100644", std::move(content)});
}

/// What is compared: two directories of the mount, and the paths that may differ.
struct Comparison {
  std::string before, after;  ///< empty: nothing was published yet
  std::string before_name, after_name;
  std::set<std::string> paths;
};

std::set<std::string> staged_paths(const JsonObject& status) {
  std::set<std::string> paths;
  if (const Json::Array* staged = array_of(status, "staged"))
    for (const Json& item : *staged)
      if (const JsonObject* fields = item.object()) paths.insert(text_of(*fields, "path"));
  return paths;
}

/// The revision that a word names: an id, "head" or "base"; nullopt for anything else.
std::optional<std::string> revision_named(const MountedPlace& place, const JsonObject& status,
                                          const std::string& word) {
  if (word == "head" || word == "base") return text_of(status, word);
  struct stat ignored {};
  if (why_not_a_component(word) || stat((place.project_directory + "/revisions/" + word).c_str(), &ignored) != 0)
    return std::nullopt;
  return word;
}

bool is_there(const std::string& path) {
  struct stat ignored {};
  return lstat(path.c_str(), &ignored) == 0;
}

/// Removes the revisions from the front of `words`; the rest are paths.
Result<Comparison> choose(const CommandContext& context, const MountedPlace& place, const JsonObject& status,
                          std::vector<std::string>& words) {
  auto tree_of = [&](const std::string& revision) {
    return revision.empty() ? "" : place.project_directory + "/revisions/" + revision;
  };
  const std::string base = text_of(status, "base");
  Comparison chosen{tree_of(base), place.work, base, "work", staged_paths(status)};
  if (words.empty() || is_there(context.io.absolute(words.front()))) return chosen;
  const std::string word = words.front();
  if (auto dots = word.find(".."); dots != std::string::npos) {
    auto before = revision_named(place, status, word.substr(0, dots));
    auto after = revision_named(place, status, word.substr(dots + 2));
    if (!before || !after) return chosen;  // then it is a path
    words.erase(words.begin());
    chosen = {tree_of(*before), tree_of(*after), *before, *after, {}};
    PLAYFS_TRY(chosen.paths, differing_paths(chosen.before, chosen.after));
    return chosen;
  }
  auto before = revision_named(place, status, word);
  if (!before) return chosen;
  words.erase(words.begin());
  // The stage differs from the base, and the base may differ from the requested revision.
  PLAYFS_TRY(auto paths, differing_paths(tree_of(*before), chosen.before));
  chosen.paths.merge(paths);
  chosen.before = tree_of(*before);
  chosen.before_name = *before;
  return chosen;
}

bool is_asked_for(const std::string& path, const std::vector<std::string>& asked) {
  return asked.empty() || std::any_of(asked.begin(), asked.end(), [&](const std::string& prefix) {
           return prefix.empty() || path == prefix || (path.starts_with(prefix) && path[prefix.size()] == '/');
         });
}

void print(Output& out, const FileDiff& diff) {
  bool colour = out.colour();
  auto line = [&](const char* code, const std::string& text) {
    // A patch in a pipe must keep its exact bytes; only a terminal could be misled by them.
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

Json as_json(const FileDiff& diff) {
  std::string text;
  for (const std::string& line : diff.header) text += line + "\n";
  for (const DiffLine& line : diff.lines) text += line.text + "\n";
  JsonObject json{{"path", diff.path},   {"change", diff.kind},     {"binary", diff.binary},
                  {"added", diff.added}, {"removed", diff.removed}, {"diff", text}};
  if (diff.renamed) {
    json.append("from", diff.renamed->from);
    json.append("similarity", std::uint64_t{diff.renamed->similarity});
  }
  return json;
}

Result<Renames> renames_of(const Comparison& compared, const std::set<std::string>& paths) {
  std::set<std::string> gone, come;
  for (const std::string& path : paths) {
    const bool before = !compared.before.empty() && is_there(compared.before + "/" + path);
    const bool after = !compared.after.empty() && is_there(compared.after + "/" + path);
    if (before != after) (before ? gone : come).insert(path);
  }
  return find_renames(
      gone, come, [&](const std::string& path) { return read_side(compared.before + "/" + path); },
      [&](const std::string& path) { return read_side(compared.after + "/" + path); });
}

/// nullopt if the two sides are the same, or neither is a file.
Result<std::optional<FileDiff>> compare_path(const Comparison& compared, const Renames& renames,
                                             const std::string& path) {
  auto renamed = renames.find(path);
  const std::string old_path = renamed == renames.end() ? path : renamed->second.from;
  std::optional<DiffSide> before, after;
  if (!compared.before.empty()) {
    PLAYFS_TRY(before, read_side(compared.before + "/" + old_path));
  }
  if (!compared.after.empty()) {
    PLAYFS_TRY(after, read_side(compared.after + "/" + path));
  }
  if (!before && !after) return std::optional<FileDiff>();
  if (before && after && renamed == renames.end() && before->mode == after->mode && before->content == after->content)
    return std::optional<FileDiff>();
  std::optional<Renamed> how;
  if (renamed != renames.end() && before && after) how = renamed->second;
  PLAYFS_TRY(FileDiff file, diff_file(path, before, after, std::move(how)));
  return std::optional(std::move(file));
}

}  // namespace

Result<ExitCode> diff(CommandContext& context, const DiffArguments& arguments) {
  std::vector<std::string> words = arguments.words;
  auto path =
      std::find_if(words.begin(), words.end(), [&](const auto& word) { return is_there(context.io.absolute(word)); });
  PLAYFS_TRY(MountedPlace place, find_project_at(context.io.absolute(path == words.end() ? "." : *path)));
  PLAYFS_TRY(JsonObject status, read_json_object(place.project_directory + "/status.json"));
  PLAYFS_TRY(Comparison compared, choose(context, place, status, words));
  std::vector<std::string> asked;
  for (const std::string& word : words) {
    PLAYFS_TRY(MountedPlace other, find_project_at(context.io.absolute(word)));
    if (other.work != place.work || !other.in_work)
      return fail(ErrorCode::invalid_argument,
                  word + " is neither a revision nor a path in the work tree " + place.work, "playfs log");
    asked.push_back(*other.in_work);
  }
  std::set<std::string> paths;
  for (const std::string& each : compared.paths)
    if (is_asked_for(each, asked)) paths.insert(each);
  PLAYFS_TRY(Renames renames, renames_of(compared, paths));
  for (const auto& [to, rename] : renames) paths.erase(rename.from);

  Pager pager(context, arguments.pager);
  Json::Array items;
  std::vector<FileDiff> files;  // for --stat, without their lines
  std::uint64_t added = 0, removed = 0;
  for (const std::string& each : paths) {
    if (!context.io.out) break;  // the reader is gone
    PLAYFS_TRY(auto file, compare_path(compared, renames, each));
    if (!file) continue;
    added += file->added;
    removed += file->removed;
    if (context.out.json()) {
      items.push_back(as_json(*file));
    } else if (arguments.stat) {
      file->lines.clear();
      files.push_back(*std::move(file));
    } else {
      print(context.out, *file);
    }
  }
  if (!files.empty())
    for (const std::string& line : stat_lines(files, context.io.columns, context.out.colour())) context.out.line(line);
  context.out.document(JsonObject{{"project", place.project},
                                  {"base", text_of(status, "base")},
                                  {"before", compared.before_name},
                                  {"after", compared.after_name},
                                  {"added", added},
                                  {"removed", removed},
                                  {"files", std::move(items)}});
  return ExitCode::done;
}

}  // namespace playfs::app
