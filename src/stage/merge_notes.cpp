#include "stage/merge_notes.h"

#include <algorithm>
#include <iterator>

#include "stage/stage_state.h"
#include "stage/store/entry_codec.h"

namespace playfs::stage {

namespace {

const std::string& line_of(const std::string& text) { return text; }
const std::string& line_of(const RevisionId& id) { return id.text(); }

/// An empty list has no row.
void put_lines(Batch& batch, std::string_view key, const auto& items) {
  if (items.empty()) return batch.rows().drop_value(key);
  std::string text;
  for (const auto& each : items) text += (text.empty() ? "" : "\n") + line_of(each);
  batch.rows().put_value(key, text);
}

}  // namespace

Status check_seen(const std::optional<std::vector<Conflicted>>& seen, const std::vector<Conflicted>& now) {
  if (!seen || *seen == now) return {};
  return fail(ErrorCode::busy, "the list of conflicts has changed", "try again");
}

void add_conflicts(std::vector<Conflicted>& list, std::vector<Conflicted> added) {
  std::move(added.begin(), added.end(), std::back_inserter(list));
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
}

void MergeNotes::put_parents(Batch& batch, const std::vector<RevisionId>& parents) {
  put_lines(batch, "merge_parents", parents);
}

void MergeNotes::put_tracked(Batch& batch, const Tracked& paths) const {
  if (paths == tracked) return;
  if (paths.empty()) batch.rows().drop_value("tracked");
  else batch.rows().put_value("tracked", encode_tracked(paths));
}

void MergeNotes::put_conflicted(Batch& batch, const std::vector<Conflicted>& list) {
  if (list.empty()) batch.rows().drop_value("conflicted");
  else batch.rows().put_value("conflicted", encode_conflicted(list));
}

void MergeNotes::put_accepted_by(Batch& batch, const std::set<std::string>& commits) {
  put_lines(batch, "accepted_by", commits);
}

void MergeNotes::replace_conflicted(Batch& batch, std::vector<Conflicted> list) {
  if (list.empty() && conflicted.empty() && accepted_by.empty()) return;
  put_conflicted(batch, list);
  put_accepted_by(batch, {});
  batch.after_commit([this, list = std::move(list)] {
    conflicted = list;
    accepted_by.clear();
  });
}

void MergeNotes::update_conflicted(Batch& batch, std::vector<Conflicted> list) {
  if (list == conflicted) return;
  put_conflicted(batch, list);
  batch.after_commit([this, list = std::move(list)] { conflicted = list; });
}

void MergeNotes::hand_on_conflicts(Batch& batch, const Inode& gone, const Inode& by) {
  if (gone.names.size() > 1) return;
  auto is_there = [&](const Conflicted& each) { return each.ino == gone.ino; };
  if (std::none_of(conflicted.begin(), conflicted.end(), is_there)) return;
  std::vector<Conflicted> list = conflicted;
  for (auto& each : list)
    if (is_there(each)) each.ino = by.ino;
  update_conflicted(batch, std::move(list));
}

void MergeNotes::move_conflicts(Batch& batch, const std::map<std::string, std::string>& moves) {
  auto follow = [&](std::string& path) {
    auto is_above = [&](const auto& move) { return path.starts_with(move.first + '/'); };
    auto move = std::find_if(moves.begin(), moves.end(), is_above);
    if (move != moves.end()) path.replace(0, move->first.size(), move->second);
  };
  std::vector<Conflicted> list = conflicted;
  for (auto& each : list) {
    follow(each.path);
    follow(each.beside);
  }
  update_conflicted(batch, std::move(list));
}

std::vector<RevisionId> Stage::merge_parents() const {
  MutexLock lock(state_->mutex);
  return state_->notes.parents;
}

Tracked Stage::tracked() const {
  MutexLock lock(state_->mutex);
  return state_->notes.tracked;
}

std::vector<Conflicted> Stage::conflicted() const {
  MutexLock lock(state_->mutex);
  return state_->shown_conflicts();
}

std::vector<Conflicted> Stage::State::shown_conflicts() const {
  return pending ? std::vector<Conflicted>() : notes.conflicted;
}

Status Stage::record_conflicted(std::vector<Conflicted> conflicted,
                                const std::optional<std::vector<Conflicted>>& seen) {
  State& state = *state_;
  {
    MutexLock lock(state.mutex);
    PLAYFS_CHECK(check_seen(seen, state.shown_conflicts()));
    if (state.notes.conflicted == conflicted) return state.rows->check_disk();
    Batch batch = state.rows->begin();
    state.notes.replace_conflicted(batch, std::move(conflicted));
    PLAYFS_CHECK(batch.commit());
  }
  return state.rows->sync();
}

Status Stage::accept_conflicted(const std::string& tx) {
  State& state = *state_;
  {
    MutexLock lock(state.mutex);
    if (state.notes.conflicted.empty()) return {};
    std::set<std::string> accepted_by = state.notes.accepted_by;
    accepted_by.insert(tx);
    Batch batch = state.rows->begin();
    MergeNotes::put_accepted_by(batch, accepted_by);
    PLAYFS_CHECK(batch.commit());
    state.notes.accepted_by = std::move(accepted_by);
  }
  return state.rows->sync();
}

bool Stage::is_accepted_by(const std::string& tx) const {
  MutexLock lock(state_->mutex);
  return state_->notes.accepted_by.contains(tx);
}

}  // namespace playfs::stage
