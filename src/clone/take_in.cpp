#include "clone/take_in.h"

#include <algorithm>

#include "clone/names.h"
#include "publish/conflicts.h"
#include "stage/ignore.h"

namespace playfs::clone {

namespace {
/// Stands for the content of a directory that cannot be read.
constexpr const char* kUnreadContent = ".unread";
constexpr const char* kWhyHidden =
    "what is published there is hidden, since it gives instructions to agents; yours stays as it is";

/// Whether it, or a directory around it, is among the names; those of directories end with a slash.
bool is_among(const std::set<std::string>& names, const std::string& path, bool is_directory) {
  if (names.contains(is_directory ? path + '/' : path)) return true;
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
    if (names.contains(path.substr(0, slash + 1))) return true;
  return false;
}
}  // namespace

/// A local-only rule file does not count, since other rules ignore it.
bool TakeIn::is_rules_item(const Item& item) {
  return !item.is_directory && !item.was_local_only && stage::is_rule_file(item.path);
}

Status TakeIn::run(Look look) {
  Scanned& found = look.found;
  unread_ = std::move(found.unread);
  for (const std::string& path : found.gone) {
    const Row row = *index_.find(path);
    PLAYFS_CHECK(forget(path, row));
  }
  std::vector<Item> names;
  std::vector<std::string> files;
  for (const Found& each : found.changed) {
    const Row* row = index_.find(each.path);
    if (row && each.is_directory) {
      const Row begun = *row;
      index_.erase(each.path), row = nullptr;  // entries refused below it stay refused in the stage
      if (begun.is_begun) PLAYFS_CHECK(remove_stand_in(joined(each.path, begun.staged)));
    }
    // A row with content means that the path is or was in the project, so ignore rules do not apply to it.
    const bool has_content = row && row->has_content() && !row->is_new();
    if (!each.is_directory && row && (has_content || row->kind == RowKind::refused)) files.push_back(each.path);
    else names.push_back({each.path, each.is_directory});
  }
  // Rules first: they decide about the names.
  std::stable_partition(files.begin(), files.end(), [](const auto& path) { return stage::is_rule_file(path); });
  PLAYFS_CHECK(take_files(files));
  for (const std::string& path : found.local_only) names.push_back({path, S_ISDIR(index_.find(path)->seen.mode), true});
  PLAYFS_CHECK(take_names(std::move(names)));
  PLAYFS_CHECK(record_conflicts());
  // Otherwise the earlier time still holds, and nothing has to be written.
  if (!found.changed.empty() || !found.gone.empty()) index_.set_looked(look.began);
  return commit();
}

// What is gone.

Status TakeIn::forget(const std::string& path, const Row& row) {
  if (row.kind == RowKind::local_only) return forget_local_only(path, row);
  if (row.has_content()) return forget_content(path, row);
  index_.erase(path);
  if (row.is_begun) PLAYFS_CHECK(remove_stand_in(joined(path, row.staged)));
  return remove_staged_directory(path);
}

Status TakeIn::remove_staged_directory(const std::string& path) {
  PLAYFS_TRY(auto staged, staged_at(stage_, path));
  if (!staged || staged->kind != stage::Kind::directory) return {};
  Status removed = stage_.remove_directory(stage_.find(directory_of(path)), name_of(path));
  // Others have published files in it meanwhile, with which the directory comes back.
  if (!removed && removed.error().code == ErrorCode::not_empty) return {};
  return removed;
}

Status TakeIn::forget_content(const std::string& path, const Row& row) {
  PLAYFS_TRY(auto staged, staged_at(stage_, path));
  index_.erase(path);
  if (!staged || staged->kind == stage::Kind::directory) return {};
  if (is_ours(&row, staged)) return remove_staged(path, *staged);
  PLAYFS_TRY(auto theirs, hash_of(stage_, *staged));
  add_conflict(path, "it was deleted here while others changed it", theirs);
  return {};
}

Status TakeIn::forget_local_only(const std::string& path, const Row& row) {
  index_.erase(path);
  PLAYFS_TRY(auto staged, staged_at(stage_, path));
  if (!staged) return {};
  if (!S_ISDIR(row.seen.mode)) return staged->key == row.staged ? remove_staged(path, *staged) : Status();
  if (staged->kind != stage::Kind::directory) return {};
  PLAYFS_CHECK(remove_stand_in(joined(path, row.staged)));
  return remove_staged_directory(path);
}

Status TakeIn::remove_staged(const std::string& path, const StagedFile& staged) {
  const stage::InodePtr directory = stage_.find(directory_of(path));
  if (!directory) return {};
  if (staged.kind == stage::Kind::directory) return stage_.remove_directory(directory, name_of(path));
  return stage_.unlink(directory, name_of(path));
}

// New names, one level of directories after the other. The stage gets all of them, empty, and says which are
// local-only: those stay as they are.

/// Syncs the stage's log first: if a power loss left rows for more than the stage has, an update could replace what was
/// edited here.
Status TakeIn::commit() {
  PLAYFS_CHECK(stage_.sync(stage_.root()));
  return index_.commit();
}

Status TakeIn::take_names(std::vector<Item> items) {
  while (!items.empty()) {
    PLAYFS_CHECK(leave_hidden(items));
    std::erase_if(items, [&](const Item& item) {
      const Row* row = index_.find(item.path);
      return row && !row->is_new() && !item.was_local_only;
    });
    std::vector<std::string> files;
    for (const Item& item : items)
      if (is_rules_item(item)) files.push_back(item.path);
    PLAYFS_CHECK(take_files(files));
    PLAYFS_CHECK(begin_names(items));
    PLAYFS_TRY(const auto local_only, local_only_names());
    files.clear();
    std::vector<Item> below;
    for (const Item& item : items) {
      if (is_rules_item(item)) continue;  // taken already
      PLAYFS_CHECK(take_name(item, is_among(local_only, item.path, item.is_directory), files, below));
    }
    PLAYFS_CHECK(take_files(files));
    items = std::move(below);
  }
  return {};
}

/// A published file that is hidden here is not replaced by what somebody put at its path unaware of it.
Status TakeIn::leave_hidden(std::vector<Item>& items) {
  std::vector<Item> others;
  for (Item& item : items) {
    PLAYFS_TRY(const bool is_left, is_hidden(item));
    if (is_left) unread_.push_back({item.path, kWhyHidden});
    else others.push_back(std::move(item));
  }
  items = std::move(others);
  return {};
}

Result<bool> TakeIn::is_hidden(const Item& item) {
  if (stage_.is_hidden(item.path)) return true;
  if (item.is_directory) return false;
  // Nor is a directory that nobody sees, because it has nothing but such files.
  PLAYFS_TRY(const auto staged, staged_at(stage_, item.path));
  return staged && staged->kind == stage::Kind::directory && stage_.has_but_hidden(staged->inode);
}

Result<std::set<std::string>> TakeIn::local_only_names() {
  for (const FileRef& rules : stage_.rules_needed()) PLAYFS_CHECK(fetch_(rules));
  PLAYFS_TRY(const auto names, stage_.unpublished());
  return std::set<std::string>(names.begin(), names.end());
}

Status TakeIn::begin_names(std::vector<Item>& items) {
  for (Item& item : items) {
    if (item.was_local_only || is_rules_item(item)) continue;
    if (item.is_directory) PLAYFS_CHECK(list(item));
    if (item.is_directory) begin_directory(item);
    else begin(item.path);
  }
  PLAYFS_CHECK(commit());
  for (const Item& item : items) {
    if (item.was_local_only || is_rules_item(item)) continue;
    if (item.is_directory) PLAYFS_CHECK(make_directory(item));
    else PLAYFS_CHECK(make_file(item.path));
  }
  return {};
}

/// Notes that the path is about to be taken in, so that what a killed command leaves is not mistaken for anyone's
/// content.
void TakeIn::begin(const std::string& path) {
  const Row* known = index_.find(path);
  Row row = known ? *known : Row();
  row.seen = {.mode = row.seen.mode};
  row.is_begun = true;
  if (!known && !stage_.find(path)) row.staged = kMadeHere;
  index_.put(path, std::move(row));
}

/// Notes the stand-in only if the stage does not have that name yet: one that is there may be published by others.
void TakeIn::begin_directory(const Item& item) {
  Row row;
  row.kind = RowKind::directory;
  row.is_begun = true;
  if (!stage_.find(joined(item.path, item.stand_in))) row.staged = item.stand_in;
  index_.put(item.path, std::move(row));
}

Status TakeIn::list(Item& item) {
  auto names = [&]() -> Result<std::vector<Name>> {
    PLAYFS_TRY(auto opened, directory_.directory(item.path));
    if (!opened) return std::vector<Name>();
    return PlainDirectory::names(opened->get(), item.path);
  }();
  if (!names && !is_about_access(names.error().code)) return fail(names.error());
  if (names) item.names = std::move(*names);
  else item.why_unread = names.error().message;
  if (!names) item.stand_in = kUnreadContent;
  else if (!item.names.empty()) item.stand_in = item.names.front().text;
  return {};
}

Status TakeIn::make_file(const std::string& path) {
  PLAYFS_TRY(auto staged, staged_at(stage_, path));
  if (staged) return {};
  PLAYFS_TRY(auto above, staged_directory(directory_of(path)));
  PLAYFS_TRY(auto made, stage_.make_file(above, name_of(path), creation_of(false)));
  PLAYFS_TRY(staged, staged_file(stage_, made));
  Row row = *index_.find(path);
  row.staged = staged->key;
  index_.put(path, std::move(row));
  return {};
}

/// With one name in it, if it has any: rules do not apply to an empty directory.
Status TakeIn::make_directory(const Item& item) {
  PLAYFS_TRY(auto made, staged_directory(item.path));
  if (item.stand_in.empty() || stage_.find(joined(item.path, item.stand_in))) return {};
  PLAYFS_CHECK(stage_.make_file(made, item.stand_in, creation_of(false)));
  return {};
}

Status TakeIn::take_name(const Item& item, bool is_local_only, std::vector<std::string>& files,
                         std::vector<Item>& below) {
  if (is_local_only) return item.was_local_only ? Status() : note_local_only(item);
  if (item.is_directory) return take_directory(item, below);
  if (item.was_local_only) begin(item.path);
  files.push_back(item.path);
  return {};
}

Status TakeIn::take_directory(Item item, std::vector<Item>& below) {
  PLAYFS_CHECK(remove_stand_in(joined(item.path, index_.find(item.path)->staged)));
  if (item.was_local_only) PLAYFS_CHECK(list(item));
  if (item.why_unread) return leave_unread(item);
  Row row;
  row.kind = RowKind::directory;
  index_.put(item.path, row);
  for (const Name& name : item.names)
    if (!name.is_other) below.push_back({joined(item.path, name.text), name.is_directory});
  return {};
}

/// Removes the name that stood for a directory's content. That name is taken from the directory, where it may be
/// something other than a file.
Status TakeIn::remove_stand_in(const std::string& path) {
  if (path.ends_with('/') || index_.find(path)) return {};
  PLAYFS_TRY(auto staged, staged_at(stage_, path));
  if (!staged || staged->kind != stage::Kind::file || staged->lower) return {};
  return remove_staged(path, *staged);
}

Status TakeIn::note_local_only(const Item& item) {
  Row row;
  row.kind = RowKind::local_only;
  row.seen.mode = item.is_directory ? S_IFDIR : S_IFREG;  // its type is all that is ever looked at
  if (item.is_directory) {
    // An empty one is a directory like any other.
    if (item.stand_in.empty()) row.kind = RowKind::directory;
    else row.staged = item.stand_in;
  } else {
    PLAYFS_TRY(auto staged, staged_at(stage_, item.path));
    if (staged) row.staged = staged->key;
  }
  index_.put(item.path, std::move(row));
  return {};
}

Status TakeIn::leave_unread(const Item& item) {
  unread_.push_back({item.path, *item.why_unread});
  index_.erase(item.path);
  return remove_staged_directory(item.path);
}

Result<stage::InodePtr> TakeIn::staged_directory(const std::string& path) {
  stage::InodePtr at = stage_.root();
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin), whole = path.substr(0, end);
    begin = end + 1;
    PLAYFS_TRY(auto staged, staged_at(stage_, whole));
    if (staged && staged->kind != stage::Kind::directory) {
      if (is_ours(index_.find(whole), staged)) PLAYFS_CHECK(remove_staged(whole, *staged));
      else PLAYFS_CHECK(set_aside(whole));
      staged.reset();
    }
    if (staged) {
      at = staged->inode;
      continue;
    }
    PLAYFS_TRY(at, stage_.make_directory(at, name, creation_of(true)));
  }
  return at;
}

// What others published and the directory does not have yet.

Status TakeIn::set_aside(const std::string& path) {
  auto is_taken = [&](const std::string& name) -> Result<bool> {
    if (stage_.find(name) || index_.find(name)) return true;
    PLAYFS_TRY(auto there, directory_.look(name));
    return there.has_value();
  };
  std::string beside;
  for (int number = 1;; ++number) {
    beside = publish::name_beside(path, ".head", number);
    PLAYFS_TRY(const bool taken, is_taken(beside));
    if (!taken) break;
  }
  const stage::InodePtr above = stage_.find(directory_of(path));
  PLAYFS_CHECK(stage_.rename(above, name_of(path), above, name_of(beside), stage::RenameMode::no_replace));
  add_conflict(path, "it was changed here while others changed it; theirs is in " + beside, std::nullopt);
  conflicts_.back().beside = beside;
  return {};
}

void TakeIn::add_conflict(const std::string& path, std::string reason, std::optional<ContentHash> left) {
  conflicts_.push_back({.path = path, .reason = std::move(reason), .has_markers = false, .left = left});
}

Status TakeIn::record_conflicts() {
  if (conflicts_.empty()) return {};
  const auto seen = stage_.conflicted();
  auto list = seen;
  std::erase_if(list, [&](const stage::Conflicted& each) {
    return std::any_of(conflicts_.begin(), conflicts_.end(), [&](const auto& own) { return own.path == each.path; });
  });
  std::move(conflicts_.begin(), conflicts_.end(), std::back_inserter(list));
  conflicts_.clear();
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return stage_.record_conflicted(std::move(list), seen);
}

}  // namespace playfs::clone
