// playfs diff: compares the work tree with its base, or other pairs of revisions.
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/pager.h"
#include "app/patch.h"
#include "app/work_tree_access.h"
#include "compare/trees.h"

namespace playfs::app {

namespace {

bool is_link(const FileEntry& entry) { return entry.mode == FileMode::symlink; }
bool was_moved(const compare::FileChange& change) { return change.kind == compare::ChangeKind::renamed; }

/// A tree, and what is known of its files.
struct DiffedTree {
  std::string name;  ///< the revision, or "work"
  std::shared_ptr<const ReadableTree> files;
  Manifest manifest = {};  ///< all files if `is_listed`, otherwise those of the paths to compare
  bool is_listed = false;

  Status list() {
    PLAYFS_TRY(manifest, files->list(""));
    is_listed = true;
    return {};
  }

  /// Whether there is a file or a link at the path, as opposed to a directory.
  [[nodiscard]] Result<bool> has_file_at(const std::string& path) const {
    if (is_listed || manifest.file_at(path)) return manifest.file_at(path) != nullptr;
    PLAYFS_TRY(auto entry, files->entry_at(path));
    return entry.has_value();
  }

  /// The file's content or the link's target; nullopt if there is none.
  [[nodiscard]] Result<std::optional<std::string>> read(const FileEntry* entry, const std::string& path) const {
    return files->content(path, entry);
  }
};

struct Comparison {
  DiffedTree before, after;
  std::set<std::string> paths;  ///< that may differ
};

std::set<std::string> staged_paths(const JsonObject& status) {
  std::set<std::string> paths;
  if (const Json::Array* staged = array_of(status, "staged"))
    for (const Json& item : *staged)
      if (const JsonObject* fields = item.object()) paths.insert(text_of(*fields, "path"));
  return paths;
}

bool is_there(const std::string& path) {
  struct stat ignored {};
  return lstat(path.c_str(), &ignored) == 0;
}

/// Lists both.
Status add_differing(std::set<std::string>& paths, DiffedTree& before, DiffedTree& after) {
  PLAYFS_CHECK(before.list());
  PLAYFS_CHECK(after.list());
  for (const auto& change : compare::changes_between(before.manifest, after.manifest)) paths.insert(change.path);
  return {};
}

/// Removes the revisions from the front of `words`; the rest are paths.
Result<Comparison> choose(const CommandContext& context, WorkTreeAccess& work, const JsonObject& status,
                          std::vector<std::string>& words) {
  auto tree_of = [&](const std::string& revision) -> Result<DiffedTree> {
    PLAYFS_TRY(auto files, work.tree(revision));
    return DiffedTree{revision, std::move(files)};
  };
  PLAYFS_TRY(DiffedTree base, tree_of(text_of(status, "base")));
  Comparison chosen{std::move(base), {"work", work.work()}, staged_paths(status)};
  if (words.empty() || is_there(context.io.absolute(words.front()))) return chosen;
  const std::string word = words.front();
  if (auto dots = word.find(".."); dots != std::string::npos) {
    auto before = revision_named(work, status, word.substr(0, dots));
    auto after = revision_named(work, status, word.substr(dots + 2));
    if (!before || !after) return chosen;  // then it is a path
    words.erase(words.begin());
    PLAYFS_TRY(chosen.before, tree_of(*before));
    PLAYFS_TRY(chosen.after, tree_of(*after));
    chosen.paths.clear();
    PLAYFS_CHECK(add_differing(chosen.paths, chosen.before, chosen.after));
    return chosen;
  }
  auto before = revision_named(work, status, word);
  if (!before) return chosen;
  words.erase(words.begin());
  // The stage differs from the base, and the base may differ from the requested revision.
  PLAYFS_TRY(DiffedTree revision, tree_of(*before));
  PLAYFS_CHECK(add_differing(chosen.paths, revision, chosen.before));
  chosen.before = std::move(revision);
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
  each_line(diff, [&](PatchLine kind, const std::string& text) {
    switch (kind) {
      case PatchLine::header: line("\x1b[1m", text); break;
      case PatchLine::hunk: line("\x1b[36m", text); break;
      case PatchLine::added: line("\x1b[32m", text); break;
      case PatchLine::removed: line("\x1b[31m", text); break;
      case PatchLine::context:
      case PatchLine::note: line("", text); break;
    }
  });
}

Json as_json(const FileDiff& diff) {
  std::string text;
  each_line(diff, [&](PatchLine, const std::string& line) { text += line + "\n"; });
  const compare::FileChange& change = diff.change;
  JsonObject json{{"path", change.path},      {"change", word_of(change)},    {"binary", diff.binary},
                  {"added", diff.text.added}, {"removed", diff.text.removed}, {"diff", text}};
  if (was_moved(change)) {
    json.append("from", change.old_path);
    json.append("similarity", std::uint64_t{change.similarity});
  }
  return json;
}

/// A file that replaces a link, or the reverse, becomes a deletion and a creation: git applies nothing else. So does a
/// renamed link, since patch(1) cannot rename links.
bool is_split_at_links(const compare::FileChange& change) {
  return (was_moved(change) && is_link(*change.after)) || is_link(*change.before) != is_link(*change.after);
}

/// Splits changes into a deletion and a creation each. `is_split` is called only for files that are in both trees.
void split(std::vector<compare::FileChange>& changes, const std::function<bool(const compare::FileChange&)>& is_split) {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    compare::FileChange& change = changes[i];
    if (!change.before || !change.after || !is_split(change)) continue;
    compare::FileChange added = change;
    added.kind = compare::ChangeKind::added;
    added.before = nullptr;
    added.old_path = added.path;
    change.kind = compare::ChangeKind::removed;
    change.after = nullptr;
    change.path = change.old_path;
    changes.insert(changes.begin() + static_cast<std::ptrdiff_t>(++i), std::move(added));
  }
}

/// Directories that replace a link or a file, or are replaced by one. patch(1) removes and creates in its own order: it
/// would write the directory's files through the link, for example into .git/hooks, and at a file it stops half-way.
/// Strangers choose both sides, so all of these are left to git. Looks in both trees, since a patch can be applied in
/// reverse, and at every directory, since the link itself need not be among the changes to show.
class ReplacedDirectories {
 public:
  static Result<ReplacedDirectories> above(const std::vector<compare::FileChange>& changes,
                                           const Comparison& compared) {
    ReplacedDirectories replaced(compared);
    for (const compare::FileChange& change : changes)
      for (const std::string& path : {change.path, change.old_path}) PLAYFS_CHECK(replaced.add_those_above(path));
    return replaced;
  }

  /// REQUIRES: one of the changes.
  [[nodiscard]] bool concern(const compare::FileChange& change) const {
    return concern(change.path) || concern(change.old_path);
  }

 private:
  explicit ReplacedDirectories(const Comparison& compared) : compared_(compared) {}

  Status add_those_above(const std::string& path) {
    for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      auto [directory, is_new] = is_replaced_.emplace(path.substr(0, slash), false);
      if (!is_new) continue;
      for (const DiffedTree* tree : {&compared_.before, &compared_.after}) {
        PLAYFS_TRY(const bool here, tree->has_file_at(directory->first));
        directory->second = directory->second || here;
      }
    }
    return {};
  }

  [[nodiscard]] bool concern(const std::string& path) const {
    auto is_one = [&](const std::string& place) {
      auto found = is_replaced_.find(place);
      return found != is_replaced_.end() && found->second;
    };
    for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
      if (is_one(path.substr(0, slash))) return true;
    return is_one(path);
  }

  const Comparison& compared_;
  std::map<std::string, bool> is_replaced_;  ///< of the directories of the changes
};

Result<std::vector<compare::FileChange>> changes_of(CommandContext& context, Comparison& compared,
                                                    const std::set<std::string>& paths) {
  for (DiffedTree* tree : {&compared.before, &compared.after}) {
    if (tree->is_listed) continue;
    for (const std::string& path : paths) {
      PLAYFS_TRY(auto entry, tree->files->entry_at(path));
      if (entry) tree->manifest.files.emplace(path, *std::move(entry));
    }
  }
  auto changes = compare::changes_between(compared.before.manifest, compared.after.manifest);
  std::erase_if(changes, [&](const compare::FileChange& change) { return !paths.contains(change.path); });
  auto read = [&](const compare::FileChange& change) {
    return change.after ? compared.after.read(change.after, change.path)
                        : compared.before.read(change.before, change.path);
  };
  PLAYFS_TRY(const bool has_all_renames, compare::pair_renames(changes, read));
  if (!has_all_renames)
    context.out.note(
        "Too many files were added and removed to compare each with each: only identical ones count as renamed.");
  split(changes, is_split_at_links);
  return changes;
}

/// nullopt if the two sides are the same, or both are gone by now.
Result<std::optional<FileDiff>> diff_of(const Comparison& compared, compare::FileChange change, AppliedBy applied_by) {
  PLAYFS_TRY(auto before, compared.before.read(change.before, change.old_path));
  PLAYFS_TRY(auto after, compared.after.read(change.after, change.path));
  if (!before && !after) return std::optional<FileDiff>();
  if (!before || !after) {
    change.kind = before ? compare::ChangeKind::removed : compare::ChangeKind::added;
    (before ? change.after : change.before) = nullptr;
    (before ? change.path : change.old_path) = before ? change.old_path : change.path;
  } else if (change.kind == compare::ChangeKind::modified && change.before->mode == change.after->mode &&
             before == after) {
    return std::optional<FileDiff>();
  }
  auto text = [](const std::optional<std::string>& content) { return content ? std::string_view(*content) : ""; };
  PLAYFS_TRY(FileDiff file, diff_file(std::move(change), text(before), text(after), applied_by));
  return std::optional(std::move(file));
}

}  // namespace

Result<ExitCode> diff(CommandContext& context, const DiffArguments& arguments) {
  std::vector<std::string> words = arguments.words;
  auto path =
      std::find_if(words.begin(), words.end(), [&](const auto& word) { return is_there(context.io.absolute(word)); });
  PLAYFS_TRY(auto work, open_work_tree(context, context.io.absolute(path == words.end() ? "." : *path), "diff"));
  const MountedPlace& place = work->place();
  PLAYFS_TRY(JsonObject status, work->status_document());
  PLAYFS_TRY(Comparison compared, choose(context, *work, status, words));
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
  const EndOfTransfer ending(work->progress());
  // What has to be read to find out what has changed is not known beforehand.
  if (TransferProgress* progress = work->progress()) progress->begin("Reading", {});
  PLAYFS_TRY(auto changes, changes_of(context, compared, paths));
  PLAYFS_TRY(const ReplacedDirectories replaced, ReplacedDirectories::above(changes, compared));
  auto is_for_git = [&](const compare::FileChange& change) { return replaced.concern(change); };
  split(changes, [&](const auto& change) { return was_moved(change) && is_for_git(change); });
  // First, so that patch(1) applies all of a patch, or nothing.
  std::stable_partition(changes.begin(), changes.end(), is_for_git);

  if (TransferProgress* progress = work->progress()) progress->end();

  Pager pager(context, arguments.pager);
  Json::Array items;
  std::vector<FileDiff> files;  // for --stat, without their lines
  std::uint64_t added = 0, removed = 0;
  for (const compare::FileChange& change : changes) {
    if (!context.io.out) break;  // the reader is gone
    const AppliedBy applied_by = is_for_git(change) ? AppliedBy::git_only : AppliedBy::any_tool;
    PLAYFS_TRY(auto file, diff_of(compared, change, applied_by));
    if (!file) continue;
    added += file->text.added;
    removed += file->text.removed;
    if (context.out.json()) {
      items.push_back(as_json(*file));
    } else if (arguments.stat) {
      file->text.hunks.clear();
      files.push_back(*std::move(file));
    } else {
      print(context.out, *file);
    }
  }
  if (!files.empty())
    for (const std::string& line : stat_lines(files, context.io.columns, context.out.colour())) context.out.line(line);
  context.out.document(JsonObject{{"project", place.project},
                                  {"base", text_of(status, "base")},
                                  {"before", compared.before.name},
                                  {"after", compared.after.name},
                                  {"added", added},
                                  {"removed", removed},
                                  {"files", std::move(items)}});
  return ExitCode::done;
}

}  // namespace playfs::app
