#include "stage/loader.h"

#include <sys/stat.h>
#include <xxhash.h>
#include <algorithm>

#include <cerrno>
#include <unordered_set>

#include "base/log.h"
#include "stage/store/entry_codec.h"
#include "stage/store/lost_found.h"

namespace playfs::stage {

namespace {

Error damaged(std::string what) {
  return Error{ErrorCode::corrupt, "the stage is damaged: " + std::move(what), "playfs doctor --repair"};
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

Status Loader::create(const RevisionTreePtr& given) {
  state_.mutex.assert_held();
  WallTime now = given ? given->revision.created_at : state_.clock.wall();
  PLAYFS_TRY(auto inodes, stored_.inodes());
  PLAYFS_TRY(auto files, state_.spool->list());
  if (!inodes.empty() || !files.empty()) return fail(damaged("no base is recorded in its database"));
  PLAYFS_CHECK(state_.rows->start());
  Batch batch = state_.rows->begin();
  std::string salted = state_.options.directory + '\n' + std::to_string(state_.clock.wall().nanoseconds);
  const std::uint64_t salt = XXH3_64bits(salted.data(), salted.size());
  state_.numbers = Numbers(salt);
  state_.rows->put_value("salt", std::to_string(salt));
  state_.rows->put_value("base", given ? given->revision.id.text() : "");
  state_.rows->put_value("base_time", std::to_string(now.nanoseconds));
  std::uint64_t ino = state_.numbers.take_ino(batch);
  state_.rows->put_value("root", std::to_string(ino));
  InodeRow row;
  row.ino = ino;
  row.kind = Kind::directory;
  row.metadata = {0777 & ~state_.options.umask, state_.options.uid, state_.options.gid, now, now, now};
  state_.rows->put_inode(row);
  PLAYFS_CHECK(batch.commit());
  return state_.rows->checkpoint();  // so that it can be loaded
}

Status Loader::load(RevisionTreePtr given) {
  state_.mutex.assert_held();
  PLAYFS_CHECK(load_values(given));
  state_.base = std::move(given);
  PLAYFS_CHECK(load_sizes());
  PLAYFS_CHECK(load_tree());
  PLAYFS_CHECK(load_pending());
  PLAYFS_CHECK(load_replacements());
  return load_spool();
}

Status Loader::load_values(const RevisionTreePtr& given) {
  auto number = [&](const char* key) -> Result<std::uint64_t> {
    PLAYFS_TRY(auto text, stored_.value(key));
    auto value = text ? parse_number<std::uint64_t>(*text) : std::nullopt;
    if (!value) return fail(damaged(std::string("no value for ") + key));
    return *value;
  };
  PLAYFS_TRY(auto recorded, stored_.value("base"));
  std::string offered = given ? given->revision.id.text() : "";
  if (recorded != offered)
    return fail(ErrorCode::invalid_argument,
                "it is based on revision \"" + recorded.value_or("") + "\", not on \"" + offered + '"');
  PLAYFS_TRY(std::uint64_t salt, number("salt"));
  PLAYFS_TRY(std::uint64_t next_ino, number("next_ino"));
  PLAYFS_TRY(auto next_spool, stored_.value("next_spool"));
  const auto spools = parse_number<std::uint64_t>(next_spool.value_or("")).value_or(1);
  state_.numbers = Numbers(salt, next_ino, std::max<std::uint64_t>(spools, 1));  // a row takes 0 for "no bytes"
  PLAYFS_TRY(auto since, stored_.value("base_time"));
  auto time = since ? parse_number<std::int64_t>(*since) : std::nullopt;
  if (!time) return fail(damaged("no value for base_time"));
  state_.base_time = {*time};
  PLAYFS_TRY(auto times, stored_.times());
  for (auto& [path, changed_at] : times) state_.path_times.emplace(std::move(path), changed_at);
  PLAYFS_TRY(state_.staged_state, stored_.value("state"));
  PLAYFS_TRY(auto parents, stored_.value("merge_parents"));
  for (auto& id : lines_of(parents.value_or(""))) state_.notes.parents.emplace_back(std::move(id));
  PLAYFS_TRY(auto commits, stored_.value("accepted_by"));
  for (auto& tx : lines_of(commits.value_or(""))) state_.notes.accepted_by.insert(std::move(tx));
  PLAYFS_TRY(auto paths, stored_.value("tracked"));
  auto known = decode_tracked(paths.value_or(""));
  if (!known) return fail(damaged("the list of tracked paths cannot be read"));
  state_.notes.tracked = *std::move(known);
  PLAYFS_TRY(auto list, stored_.value("conflicted"));
  auto decoded = decode_conflicted(list.value_or(""));
  if (!decoded) return fail(damaged("the list of conflicts cannot be read"));
  state_.notes.conflicted = std::move(*decoded);
  PLAYFS_TRY(auto trusted, stored_.value(InstructionFiles::kTrusted));
  PLAYFS_TRY(auto concealed, stored_.value(InstructionFiles::kConcealed));
  state_.instructions.load(trusted.value_or(""), concealed.value_or(""));
  return {};
}

Status Loader::load_sizes() {
  PLAYFS_TRY(auto stored, stored_.sizes());
  for (const SizeRow& row : stored) {
    known_sizes_[row.spool] = {row.least(state_.boot), row.synced, 0};
  }
  return {};
}

SpoolFilePtr Loader::file_of_earlier_run(std::uint64_t number) {
  auto file = std::make_shared<SpoolFile>(state_.spool, number, true);
  file->is_of_earlier_run();
  if (auto known = known_sizes_.find(number); known != known_sizes_.end()) {
    file->noted = known->second;
    file->noted.changes = file->changes;
    file->expected = file->noted.size;
  }
  return file;
}

Status Loader::load_tree() {
  std::map<std::pair<std::string, std::string>, RevisionTreePtr> rescued;
  PLAYFS_TRY(auto rescued_rows, stored_.rescued());
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
  PLAYFS_TRY(auto inode_rows, stored_.inodes());
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
      RevisionTreePtr revision = state_.base;
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

  PLAYFS_TRY(auto root_number, stored_.value("root"));
  auto top = inodes.find(parse_number<std::uint64_t>(root_number.value_or("")).value_or(0));
  if (top == inodes.end() || !top->second->is_directory()) return fail(damaged("no root directory"));
  state_.root = top->second;
  state_.by_ino.emplace(state_.root->ino, state_.root.get());

  PLAYFS_TRY(auto entries, stored_.entries());
  for (auto& entry : entries) {
    auto parent = inodes.find(entry.parent);
    if (parent == inodes.end() || !parent->second->is_directory()) return fail(damaged("a name without a directory"));
    if (entry.ino == 0) {
      parent->second->directory->whiteouts.insert(std::move(entry.name));
      continue;
    }
    auto child = inodes.find(entry.ino);
    if (child == inodes.end() || child->second == state_.root) return fail(damaged("a name without a file"));
    if (child->second->is_directory() && !child->second->names.empty())
      return fail(damaged("a directory with two names"));
    state_.attach(*parent->second, entry.name, child->second);
  }

  std::vector<std::pair<Inode*, const Tree::Directory*>> left = {{state_.root.get(), state_.base_root()}};
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

Status Loader::load_pending() {
  PLAYFS_TRY(auto tx, stored_.value("pending_tx"));
  if (!tx) return {};
  PLAYFS_TRY(auto pending_base, stored_.value("pending_base"));
  PLAYFS_TRY(auto files, stored_.pending());
  PLAYFS_TRY(auto deletions, stored_.pending_deletions());
  state_.pending.emplace();
  state_.pending->tx = std::move(*tx);
  state_.pending->base = RevisionId(pending_base.value_or(""));
  PLAYFS_TRY(state_.pending->state, stored_.value("pending_state"));
  std::unordered_map<std::uint64_t, SpoolFilePtr> in_use;
  for (const auto& [ino, inode] : state_.by_ino) {
    if (inode->spool) in_use.emplace(inode->spool->number(), inode->spool);
  }
  for (auto& file : files) {
    if (file.spool != 0) {
      auto known = in_use.find(file.spool);
      SpoolFilePtr bytes = known != in_use.end() ? known->second : file_of_earlier_run(file.spool);
      bytes->expected = bytes->noted.size = file.size;  // all of it was synced before it became pending
      state_.frozen.emplace(file.spool, std::move(bytes));
    }
    std::string path = file.path;
    state_.pending->files.emplace(std::move(path), std::move(file));
  }
  state_.pending->deletions.insert(deletions.begin(), deletions.end());
  return {};
}

Status Loader::load_replacements() {
  PLAYFS_TRY(auto stored, stored_.replacements());
  if (stored.empty()) return {};
  std::unordered_map<std::uint64_t, Inode*> by_spool;
  for (const auto& [ino, inode] : state_.by_ino) {
    if (inode->spool) by_spool.emplace(inode->spool->number(), inode);
  }
  auto old_file = [&](std::uint64_t number) PLAYFS_REQUIRES(state_.mutex) -> SpoolFilePtr {
    if (number == 0) return nullptr;
    if (auto known = state_.frozen.find(number); known != state_.frozen.end()) return known->second;
    return file_of_earlier_run(number);
  };
  std::vector<std::string> lost;
  for (auto& row : stored) {
    auto found = by_spool.find(row.spool);
    if (found == by_spool.end()) continue;
    Inode& inode = *found->second;
    bool is_whole = false;
    if (row.boot == state_.boot) {
      struct stat attributes {};
      auto fd = state_.spool->descriptor(*inode.spool, false);
      if (!fd && !inode.spool->is_lost) return fail(fd.error());
      if (fd && *fd && fstat((*fd)->get(), &attributes) != 0)
        return fail(error_from_errno(errno, "stat a staged file"));
      is_whole = fd && *fd && static_cast<std::uint64_t>(attributes.st_size) >= row.size;
      if (!is_whole) lost.push_back(state_.path(inode).value_or(""));
    }
    SpoolFilePtr old = old_file(row.old_spool);
    if (is_whole) {
      const auto number = row.spool;
      const std::uint64_t changes = inode.spool->changes;
      state_.replacements.emplace(number,
                                  Stage::State::Replacement{inode.spool, std::move(old), changes, std::move(row)});
      continue;
    }
    const RevisionTreePtr revision = state_.base;
    const FileEntry* entry = row.old_path.empty() || !revision ? nullptr : revision->tree.file_at(row.old_path);
    if (!old && !entry) continue;  // nothing to go back to
    const std::uint64_t number = row.spool;
    inode.spool = std::move(old);
    if (entry) inode.lower = {revision, row.old_path, entry};
    inode.metadata.ctime = state_.clock.wall();
    const Name& name = inode.names[0];
    returned_.emplace_back(number, name.directory->directory->children.find(name.text)->second.inode);
  }
  tell_of_lost(std::move(lost));
  return {};
}

Status Loader::load_spool() {
  std::unordered_set<std::uint64_t> wanted, given_up;
  for (const auto& [ino, inode] : state_.by_ino) {
    if (inode->spool) wanted.insert(inode->spool->number());
  }
  for (const auto& [number, file] : state_.frozen) wanted.insert(number);
  for (const auto& [number, each] : state_.replacements) wanted.insert(each.row.old_spool);
  for (std::uint64_t number : wanted) state_.numbers.skip_spool(number);
  PLAYFS_TRY(auto unnamed, stored_.given_up());
  for (std::uint64_t number : unnamed) {
    state_.numbers.skip_spool(number);
    if (!wanted.contains(number)) given_up.insert(number);
  }
  state_.spool->remove_partial();
  PLAYFS_TRY(auto present, state_.spool->list());
  const std::vector<std::uint64_t> removed(given_up.begin(), given_up.end());
  std::vector<std::uint64_t> lost;
  for (std::uint64_t number : present) {
    state_.numbers.skip_spool(number);
    if (!wanted.contains(number) && !given_up.contains(number)) lost.push_back(number);
  }
  const std::unordered_set<std::uint64_t> there(present.begin(), present.end());
  std::vector<std::string> gone;
  for (const auto& [ino, inode] : state_.by_ino) {
    if (!inode->spool || there.contains(inode->spool->number())) continue;
    // A file is created with its first byte.
    if (inode->spool->expected == 0 && !state_.frozen.contains(inode->spool->number())) inode->spool->is_made = false;
    else gone.push_back(state_.path(*inode).value_or(""));
  }
  std::vector<std::uint64_t> forgotten;
  for (const auto& [number, size] : known_sizes_) {
    if (!wanted.contains(number)) forgotten.push_back(number);
  }
  state_.rows->forget_sizes(forgotten);
  state_.spool->remove(removed);
  // Also those that have a row again: they are given up anew when they lose it.
  state_.rows->forget_given_up(unnamed);
  if (!lost.empty() || state_.rows->has_changed_last()) PLAYFS_CHECK(set_aside(lost));
  else if (state_.rows->torn() > 0)
    log_warning(state_.options.directory + ": " + std::to_string(state_.rows->torn()) +
                " bytes of the operations log are incomplete, as after a power loss");
  tell_of_lost(std::move(gone));
  return {};
}

Status Loader::set_aside(const std::vector<std::uint64_t>& numbers) {
  std::string what;
  if (!numbers.empty()) what = std::to_string(numbers.size()) + " unreferenced or incomplete spool files";
  if (state_.rows->has_changed_last())
    what += std::string(what.empty() ? "" : " and ") + "the damaged last operation of its log";
  std::string folder;
  auto moved = [&]() -> Status {
    state_.mutex.assert_held();
    PLAYFS_TRY(folder, new_lost_folder(state_.options.directory,
                                       "mount-" + std::to_string(state_.clock.wall().nanoseconds / 1000000000)));
    SpoolNames names;
    PLAYFS_TRY(auto entries, stored_.entries());
    for (const auto& row : entries) names.add(row);
    PLAYFS_TRY(auto inodes, stored_.inodes());
    for (const auto& row : inodes) {
      if (row.spool != 0) names.add_file(row.spool, row.ino);
    }
    names.add_log(state_.options.directory);
    PLAYFS_CHECK(write_file_atomically(folder + "/names", names.list()));
    PLAYFS_CHECK(copy_log(state_.options.directory, folder));
    for (std::uint64_t number : numbers)
      PLAYFS_CHECK(move_to(state_.options.directory + "/spool/" + std::to_string(number),
                           folder + "/" + std::to_string(number)));
    PLAYFS_CHECK(sync_directory(folder));
    return sync_directory(state_.options.directory);
  }();
  // Files that cannot be moved stay where they are; their numbers are never reused.
  std::string where = moved ? "were moved to " + folder + ", with a list of their names" : "were left in its spool";
  if (numbers.empty()) where = moved ? "was moved to " + folder : "was lost";
  state_.found_lost = Error{ErrorCode::corrupt, state_.options.directory + ": " + what + " " + where,
                            "inspect them: a power loss or disk damage leaves such files"};
  if (!moved) state_.found_lost->message += ": " + moved.error().message;
  log_warning(state_.found_lost->message);
  // If old bytes count again, the move must succeed: once their rows say so, the files that had replaced them are given
  // up.
  return returned_.empty() ? Status() : moved;
}

void Loader::tell_of_lost(std::vector<std::string> names) {
  if (names.empty()) return;
  std::sort(names.begin(), names.end());
  const std::string what = std::to_string(names.size()) + " staged files are missing from " + state_.options.directory +
                           "/spool and cannot be read: " + names.front() + (names.size() > 1 ? ", …" : "");
  log_warning(what);
  if (state_.found_lost) state_.found_lost->message += "; " + what;
  else
    state_.found_lost =
        Error{ErrorCode::corrupt, what,
              "\"playfs status\" lists them; restore their bytes, rewrite them, or playfs discard them"};
}

Status Loader::record_returned() {
  state_.mutex.assert_held();
  if (returned_.empty()) return {};
  Batch batch = state_.rows->begin();
  for (const auto& [number, inode] : returned_) {
    state_.rows->put_inode(state_.row_of(*inode));
    state_.rows->drop_replacement(number);
  }
  PLAYFS_CHECK(batch.commit());
  return {};
}

}  // namespace playfs::stage
