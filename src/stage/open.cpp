// Opening a stage: loads the database and spool of a directory, under its lock, as a tree in memory.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <unordered_set>

#include "base/log.h"
#include "stage/stage_state.h"
#include "stage/store/begun.h"
#include "stage/store/entry_codec.h"
#include "stage/store/lost_found.h"

namespace playfs::stage {

namespace {

Error damaged(std::string what) {
  return Error{ErrorCode::corrupt, "the stage is damaged: " + std::move(what), "playfs doctor --repair"};
}

Error in_use(const std::string& directory, const std::string& holder) {
  return Error{ErrorCode::busy,
               "the work tree's staged changes in " + directory + " are in use" +
                   (holder.empty() ? "" : " by process " + holder),
               "unmount it there first, or use another state directory for this mount"};
}

/// Held while the descriptor is open; the kernel releases it when the process ends, however it ends.
Result<UniqueFd> take_lock(const std::string& directory) {
  std::string path = directory + "/lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  // The directory existed a moment ago: another process has just removed this stage.
  if (!fd && errno == ENOENT) return fail(in_use(directory, ""));
  if (!fd) return fail(error_from_errno(errno, "open " + path));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail(error_from_errno(errno, "lock " + path));
    return fail(in_use(directory, read_at(fd.get(), 0, 20).value_or("")));
  }
  // A process that removes a stage holds its lock: this lock file may be unlinked by now.
  struct stat held {
  }, named{};
  if (fstat(fd.get(), &held) != 0 || stat(path.c_str(), &named) != 0 || held.st_ino != named.st_ino)
    return fail(in_use(directory, ""));
  if (ftruncate(fd.get(), 0) == 0) static_cast<void>(write_all_at(fd.get(), std::to_string(getpid()), 0));
  return fd;
}

/// On a full disk, what a crash left in the log is applied with the space reserved for that.
Result<std::unique_ptr<Rows>> open_rows(const std::string& directory) {
  auto rows = Rows::open(directory);
  if (!rows && rows.error().code == ErrorCode::corrupt) {
    Error error = rows.error().while_doing("the staged changes in " + directory);
    if (error.hint.empty()) error.hint = "playfs doctor --repair";
    return fail(std::move(error));
  }
  if (rows || rows.error().code != ErrorCode::no_space) return rows;
  if (unlink((directory + Stage::State::kReserve).c_str()) != 0) return rows;
  return Rows::open(directory);
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    auto end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

Stage::Stage(std::unique_ptr<State> state) : state_(std::move(state)) {}
Stage::~Stage() = default;
const std::optional<Error>& Stage::found_lost() const { return state_->found_lost; }

Result<std::unique_ptr<Stage>> Stage::open(StageOptions options, const Clock& clock, RevisionTreePtr base) {
  auto state = std::make_unique<State>(std::move(options), clock);
  const std::string& directory = state->options.directory;
  PLAYFS_CHECK(make_private_directory(directory));
  PLAYFS_TRY(state->lock, take_lock(directory));
  PLAYFS_TRY(state->rows, open_rows(directory));
  PLAYFS_TRY(state->spool, Spool::open(directory + "/spool", state->options.descriptors));
  state->begin_housekeeping();
  {
    MutexLock lock(state->mutex);
    auto loaded = [&]() PLAYFS_NO_ANALYSIS -> Status {
      PLAYFS_TRY(auto recorded, state->rows->stored().value("base"));
      if (!recorded) PLAYFS_CHECK(state->create(base));
      return state->load(std::move(base));
    }();
    if (!loaded) return fail(loaded.error().while_doing("open the staged changes in " + directory));
    PLAYFS_CHECK(state->rows->start());
    // Without the mark, a later loss of the database may go unnoticed.
    if (auto marked = mark_begun(directory, state->rows->stored()); !marked)
      log_warning("the staged changes in " + directory + " could not be marked as started: " + marked.error().message);
    PLAYFS_CHECK(state->record_returned());
    if (!state->has_reserve()) state->give_up_reserve();
    state->is_open = true;
  }
  return std::unique_ptr<Stage>(new Stage(std::move(state)));
}

Status Stage::remove(std::unique_ptr<Stage> stage) {
  const std::string directory = stage->state_->options.directory, gone = directory + ".gone";
  UniqueFd lock = std::move(stage->state_->lock);  // until nothing is left that another process could open
  stage.reset();
  std::error_code error;
  std::filesystem::remove_all(gone, error);  // left by a crash
  if (std::rename(directory.c_str(), gone.c_str()) != 0)
    return fail(error_from_errno(errno, "remove the staged changes in " + directory));
  std::filesystem::remove_all(gone, error);
  if (error) return fail(error_from_errno(error.value(), "remove " + gone));
  return {};
}

Result<std::optional<RevisionId>> Stage::recorded_base(const std::string& directory) {
  if (auto there = Rows::check_database(directory); !there)
    return fail(there.error().while_doing("the staged changes in " + directory));
  if (access((directory + Rows::kDatabase).c_str(), F_OK) != 0) return std::optional<RevisionId>();
  PLAYFS_TRY(UniqueFd lock, take_lock(directory));
  PLAYFS_TRY(auto rows, open_rows(directory));
  PLAYFS_TRY(auto recorded, rows->stored().value("base"));
  if (!recorded) return std::optional<RevisionId>();
  return std::optional<RevisionId>(RevisionId(std::move(*recorded)));
}

Status Stage::State::create(const RevisionTreePtr& given) {
  WallTime now = given ? given->revision.created_at : clock.wall();
  PLAYFS_TRY(auto inodes, rows->stored().inodes());
  PLAYFS_TRY(auto files, spool->list());
  if (!inodes.empty() || !files.empty()) return fail(damaged("no base is recorded in its database"));
  PLAYFS_CHECK(rows->start());
  Batch batch = rows->begin();
  std::string salted = options.directory + '\n' + std::to_string(clock.wall().nanoseconds);
  salt = XXH3_64bits(salted.data(), salted.size());
  rows->put_value("salt", std::to_string(salt));
  rows->put_value("base", given ? given->revision.id.text() : "");
  rows->put_value("base_time", std::to_string(now.nanoseconds));
  std::uint64_t ino = take_ino(batch);
  rows->put_value("root", std::to_string(ino));
  InodeRow row;
  row.ino = ino;
  row.kind = Kind::directory;
  row.metadata = {0777 & ~options.umask, options.uid, options.gid, now, now, now};
  rows->put_inode(row);
  PLAYFS_CHECK(batch.commit());
  return rows->checkpoint();  // so that it can be loaded
}

Status Stage::State::load(RevisionTreePtr given) {
  PLAYFS_CHECK(load_values(given));
  base = std::move(given);
  PLAYFS_CHECK(load_sizes());
  PLAYFS_CHECK(load_tree());
  PLAYFS_CHECK(load_pending());
  PLAYFS_CHECK(load_replacements());
  return load_spool();
}

Status Stage::State::load_spool() {
  PLAYFS_TRY(auto recorded, rows->stored().value("next_spool"));
  next_spool = std::max(next_spool, parse_number<std::uint64_t>(recorded.value_or("")).value_or(1));
  auto takes = [this](std::uint64_t number) PLAYFS_NO_ANALYSIS { next_spool = std::max(next_spool, number + 1); };
  std::unordered_set<std::uint64_t> wanted, given_up;
  for (const auto& [ino, inode] : by_ino) {
    if (inode->spool) wanted.insert(inode->spool->number());
  }
  for (const auto& [number, file] : frozen) wanted.insert(number);
  for (const auto& [number, each] : replacements) wanted.insert(each.row.old_spool);
  for (std::uint64_t number : wanted) takes(number);
  PLAYFS_TRY(auto unnamed, rows->stored().given_up());
  for (std::uint64_t number : unnamed) {
    takes(number);
    if (!wanted.contains(number)) given_up.insert(number);
  }
  spool->remove_partial();
  PLAYFS_TRY(auto present, spool->list());
  const std::vector<std::uint64_t> removed(given_up.begin(), given_up.end());
  std::vector<std::uint64_t> lost;
  for (std::uint64_t number : present) {
    takes(number);
    if (!wanted.contains(number) && !given_up.contains(number)) lost.push_back(number);
  }
  const std::unordered_set<std::uint64_t> there(present.begin(), present.end());
  std::vector<std::string> gone;
  for (const auto& [ino, inode] : by_ino) {
    if (!inode->spool || there.contains(inode->spool->number())) continue;
    // A file is created with its first byte.
    if (inode->spool->expected == 0 && !frozen.contains(inode->spool->number())) inode->spool->is_made = false;
    else gone.push_back(path(*inode).value_or(""));
  }
  std::vector<std::uint64_t> forgotten;
  for (const auto& [number, size] : known_sizes) {
    if (!wanted.contains(number)) forgotten.push_back(number);
  }
  rows->forget_sizes(forgotten);
  known_sizes.clear();
  spool->remove(removed);
  // Also those that have a row again: they are given up anew when they lose it.
  rows->forget_given_up(unnamed);
  if (!lost.empty() || rows->has_changed_last()) PLAYFS_CHECK(set_aside(lost));
  else if (rows->torn() > 0)
    log_warning(options.directory + ": " + std::to_string(rows->torn()) +
                " bytes of the operations log are incomplete, as after a power loss");
  tell_of_lost(std::move(gone));
  return {};
}

Status Stage::State::set_aside(const std::vector<std::uint64_t>& numbers) {
  std::string what;
  if (!numbers.empty()) what = std::to_string(numbers.size()) + " unreferenced or incomplete spool files";
  if (rows->has_changed_last())
    what += std::string(what.empty() ? "" : " and ") + "the damaged last operation of its log";
  std::string folder;
  auto moved = [&]() PLAYFS_NO_ANALYSIS -> Status {
    PLAYFS_TRY(folder,
               new_lost_folder(options.directory, "mount-" + std::to_string(clock.wall().nanoseconds / 1000000000)));
    SpoolNames names;
    PLAYFS_TRY(auto entries, rows->stored().entries());
    for (const auto& row : entries) names.add(row);
    PLAYFS_TRY(auto inodes, rows->stored().inodes());
    for (const auto& row : inodes) {
      if (row.spool != 0) names.add_file(row.spool, row.ino);
    }
    names.add_log(options.directory);
    PLAYFS_CHECK(write_file_atomically(folder + "/names", names.list()));
    PLAYFS_CHECK(copy_log(options.directory, folder));
    for (std::uint64_t number : numbers)
      PLAYFS_CHECK(
          move_to(options.directory + "/spool/" + std::to_string(number), folder + "/" + std::to_string(number)));
    PLAYFS_CHECK(sync_directory(folder));
    return sync_directory(options.directory);
  }();
  // Files that cannot be moved stay where they are; their numbers are never reused.
  std::string where = moved ? "were moved to " + folder + ", with a list of their names" : "were left in its spool";
  if (numbers.empty()) where = moved ? "was moved to " + folder : "was lost";
  found_lost = Error{ErrorCode::corrupt, options.directory + ": " + what + " " + where,
                     "inspect them: a power loss or disk damage leaves such files"};
  if (!moved) found_lost->message += ": " + moved.error().message;
  log_warning(found_lost->message);
  // If old bytes count again, the move must succeed: once their rows say so, the files that had replaced them are given
  // up.
  return returned.empty() ? Status() : moved;
}

Status Stage::State::load_values(const RevisionTreePtr& given) {
  auto number = [&](const char* key) -> Result<std::uint64_t> {
    PLAYFS_TRY(auto text, rows->stored().value(key));
    auto value = text ? parse_number<std::uint64_t>(*text) : std::nullopt;
    if (!value) return fail(damaged(std::string("no value for ") + key));
    return *value;
  };
  PLAYFS_TRY(auto recorded, rows->stored().value("base"));
  std::string offered = given ? given->revision.id.text() : "";
  if (recorded != offered)
    return fail(ErrorCode::invalid_argument,
                "it is based on revision \"" + recorded.value_or("") + "\", not on \"" + offered + '"');
  PLAYFS_TRY(salt, number("salt"));
  PLAYFS_TRY(next_ino, number("next_ino"));
  reserved_inos = next_ino;
  PLAYFS_TRY(auto since, rows->stored().value("base_time"));
  auto time = since ? parse_number<std::int64_t>(*since) : std::nullopt;
  if (!time) return fail(damaged("no value for base_time"));
  base_time = {*time};
  PLAYFS_TRY(auto times, rows->stored().times());
  for (auto& [path, changed_at] : times) path_times.emplace(std::move(path), changed_at);
  PLAYFS_TRY(staged_state, rows->stored().value("state"));
  PLAYFS_TRY(auto parents, rows->stored().value("merge_parents"));
  for (auto& id : lines_of(parents.value_or(""))) merge_parents.emplace_back(std::move(id));
  PLAYFS_TRY(auto commits, rows->stored().value("accepted_by"));
  for (auto& tx : lines_of(commits.value_or(""))) accepted_by.insert(std::move(tx));
  PLAYFS_TRY(auto paths, rows->stored().value("tracked"));
  auto known = decode_tracked(paths.value_or(""));
  if (!known) return fail(damaged("the list of tracked paths cannot be read"));
  tracked = *std::move(known);
  PLAYFS_TRY(auto list, rows->stored().value("conflicted"));
  auto decoded = decode_conflicted(list.value_or(""));
  if (!decoded) return fail(damaged("the list of conflicts cannot be read"));
  conflicted = std::move(*decoded);
  return {};
}

Status Stage::State::load_tree() {
  std::map<std::pair<std::string, std::string>, RevisionTreePtr> rescued;
  PLAYFS_TRY(auto rescued_rows, rows->stored().rescued());
  for (auto& row : rescued_rows) {
    // A revision with only the one file that is still needed.
    Revision revision;
    revision.id = RevisionId(row.revision);
    revision.project = ProjectId(row.project);
    revision.manifest.tx = row.tx;
    revision.manifest.files.emplace(row.path, std::move(row.entry));
    rescued[{row.revision, row.path}] = std::make_shared<RevisionTree>(std::move(revision));
  }

  std::unordered_map<std::uint64_t, InodePtr> inodes;
  PLAYFS_TRY(auto inode_rows, rows->stored().inodes());
  for (auto& row : inode_rows) {
    auto inode = std::make_shared<Inode>(row.ino, row.kind);
    inode->metadata = row.metadata;
    inode->has_row = true;
    inode->target = std::move(row.target);
    inode->device = row.device;
    if (row.kind == Kind::directory) {
      inode->directory = std::make_unique<Directory>();
      inode->directory->opaque = row.opaque;
    } else if (!row.lower_path.empty()) {
      RevisionTreePtr revision = base;
      if (!row.lower_revision.empty()) revision = rescued[{row.lower_revision, row.lower_path}];
      const FileEntry* entry = revision ? revision->tree.file_at(row.lower_path) : nullptr;
      if (!entry) return fail(damaged("no published file " + row.lower_path));
      inode->lower = {std::move(revision), std::move(row.lower_path), entry};
    } else if (row.kind == Kind::file) {
      if (row.spool == 0) return fail(damaged("a file without content"));
      inode->spool = file_of_earlier_run(row.spool);
    }
    inodes.emplace(row.ino, std::move(inode));
  }

  PLAYFS_TRY(auto root_number, rows->stored().value("root"));
  auto top = inodes.find(parse_number<std::uint64_t>(root_number.value_or("")).value_or(0));
  if (top == inodes.end() || !top->second->is_directory()) return fail(damaged("no root directory"));
  root = top->second;
  by_ino.emplace(root->ino, root.get());

  PLAYFS_TRY(auto entries, rows->stored().entries());
  for (auto& entry : entries) {
    auto parent = inodes.find(entry.parent);
    if (parent == inodes.end() || !parent->second->is_directory()) return fail(damaged("a name without a directory"));
    if (entry.ino == 0) {
      parent->second->directory->whiteouts.insert(std::move(entry.name));
      continue;
    }
    auto child = inodes.find(entry.ino);
    if (child == inodes.end() || child->second == root) return fail(damaged("a name without a file"));
    if (child->second->is_directory() && !child->second->names.empty())
      return fail(damaged("a directory with two names"));
    attach(*parent->second, entry.name, child->second);
  }

  std::vector<std::pair<Inode*, const Tree::Directory*>> left = {{root.get(), base_root()}};
  while (!left.empty()) {
    auto [inode, lower] = left.back();
    left.pop_back();
    Directory& in = *inode->directory;
    if (in.opaque) in.loaded = true;
    else in.lower = lower;
    for (auto& [name, child] : in.children) {
      if (!child.inode->is_directory()) continue;
      left.emplace_back(child.inode.get(), in.lower ? in.lower->directory(name) : nullptr);
    }
  }
  return {};
}

Status Stage::State::load_pending() {
  PLAYFS_TRY(auto tx, rows->stored().value("pending_tx"));
  if (!tx) return {};
  PLAYFS_TRY(auto pending_base, rows->stored().value("pending_base"));
  PLAYFS_TRY(auto files, rows->stored().pending());
  PLAYFS_TRY(auto deletions, rows->stored().pending_deletions());
  pending.emplace();
  pending->tx = std::move(*tx);
  pending->base = RevisionId(pending_base.value_or(""));
  PLAYFS_TRY(pending->state, rows->stored().value("pending_state"));
  std::unordered_map<std::uint64_t, SpoolFilePtr> in_use;
  for (const auto& [ino, inode] : by_ino) {
    if (inode->spool) in_use.emplace(inode->spool->number(), inode->spool);
  }
  for (auto& file : files) {
    if (file.spool != 0) {
      auto known = in_use.find(file.spool);
      SpoolFilePtr bytes = known != in_use.end() ? known->second : file_of_earlier_run(file.spool);
      bytes->expected = bytes->noted.size = file.size;  // all of it was synced before it became pending
      frozen.emplace(file.spool, std::move(bytes));
    }
    std::string path = file.path;
    pending->files.emplace(std::move(path), std::move(file));
  }
  pending->deletions.insert(deletions.begin(), deletions.end());
  return {};
}

Stage::State::~State() {
  {
    // Destroying the tree from its root would recurse to its full depth; so every directory is emptied first.
    MutexLock locked(mutex);
    std::vector<InodePtr> all;
    if (root) all.push_back(root);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i]->times_ahead) {
        if (auto stored = measure(*all[i]); !stored)
          log_warning("cannot save the times of a staged file: " + stored.error().message);
      }
      if (!all[i]->directory) continue;
      for (auto& [name, child] : all[i]->directory->children) all.push_back(child.inode);
    }
    if (is_open) {
      if (auto noted = note_sizes(all); !noted)
        log_warning("cannot save the sizes of staged files: " + noted.error().message);
    }
    for (auto& inode : all) {
      inode->names.clear();
      if (!inode->directory) continue;
      inode->directory->by_cookie.clear();
      inode->directory->children.clear();
    }
  }
  end_housekeeping();
}

}  // namespace playfs::stage
