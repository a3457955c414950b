#include "stage/rebase.h"

#include <algorithm>

namespace playfs::stage {

WallTime time_of_revision(const RevisionTree& revision, const Clock& clock) {
  return revision.revision.created_at == WallTime() ? clock.wall() : revision.revision.created_at;
}

Error in_the_way(const std::vector<std::string>& obstructed) {
  std::string message = obstructed.front() + " is local-only and in the way of a published file";
  if (obstructed.size() > 1) message += " (and " + std::to_string(obstructed.size() - 1) + " more)";
  return Error{ErrorCode::busy, std::move(message), "move it out of the way"};
}

Status Rebase::run() {
  state_.mutex.assert_held();
  PLAYFS_CHECK(state_.settle_replacements(batch_));
  now_ = state_.clock.wall();
  brought_ = now_;
  times_ = state_.path_times;
  default_time_ = state_.base_time;
  if (next_ != state_.base) {
    if (next_) brought_ = time_of_revision(*next_, state_.clock);
    plan_times();
    state_.rows->put_value("base", next_ ? next_->revision.id.text() : "");
  }
  batch_.after_commit([this]() PLAYFS_REQUIRES(state_.mutex) {
    state_.path_times = times_;
    state_.base_time = default_time_;
  });
  state_.rows->clear_opaque();
  PLAYFS_TRY([[maybe_unused]] Visited root,
             visit(state_.root, "", state_.base_root(), next_ ? &next_->tree.root() : nullptr, false));
  touch_what_lost_names();
  state_.add_instructing(invalidations);
  state_.rows->drop_unused_rescued();
  batch_.after_commit([this]() PLAYFS_REQUIRES(state_.mutex) {
    state_.base = next_;
    state_.changed();
  });
  return {};
}

void Rebase::plan_times() {
  if (!state_.base) {
    default_time_ = brought_;
    times_.clear();
    state_.rows->put_value("base_time", std::to_string(brought_.nanoseconds));
  } else if (next_) {
    for (const auto& [path, entry] : next_->tree.manifest().files) {
      const FileEntry* old = state_.base->tree.file_at(path);
      if (!old || !old->same_content(entry)) times_[path] = brought_;
    }
    plan_directory_times(&state_.base->tree.root(), next_->tree.root(), "");
    std::erase_if(times_, [&](const auto& time) {
      return !next_->tree.file_at(time.first) && !next_->tree.directory_at(time.first);
    });
  }
  for (const auto& [path, time] : times_) {
    auto known = state_.path_times.find(path);
    if (known == state_.path_times.end() || known->second != time) state_.rows->put_time(path, time);
  }
  for (const auto& [path, time] : state_.path_times) {
    if (!times_.contains(path)) state_.rows->drop_time(path);
  }
}

void Rebase::plan_directory_times(const LowerDirectory* before, const LowerDirectory& after, const std::string& path) {
  bool same_names =
      before && std::equal(before->children.begin(), before->children.end(), after.children.begin(),
                           after.children.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
  if (!same_names && !path.empty()) times_[path] = brought_;
  for (const auto& [name, child] : after.children) {
    if (const auto* below = as_directory(&child))
      plan_directory_times(as_directory(child_of(before, name)), *below, join_path(path, name));
  }
}

WallTime Rebase::time_of(std::string_view path) const {
  auto found = times_.find(path);
  return found == times_.end() ? default_time_ : found->second;
}

Result<Rebase::Visited> Rebase::visit(const InodePtr& directory, const std::string& path, const LowerDirectory* before,
                                      const LowerDirectory* after, bool yields) {
  Directory& in = *directory->directory;
  batch_.after_commit([directory, after, this, path]() PLAYFS_REQUIRES(state_.mutex) {
    directory->directory->lower = after;
    directory->directory->opaque = false;
    if (directory->has_row) return;
    // As if it were loaded anew at the next start.
    Metadata& metadata = directory->metadata;
    metadata.atime = metadata.mtime = metadata.ctime = time_of(path);
  });
  // Where no caller has looked yet, nothing has to be invalidated or moved.
  if (!directory->has_row && !in.loaded && !is_below(first_below(path), path))
    return Visited{after != nullptr, after == nullptr};

  state_.load_names(*directory);
  std::set<std::string, std::less<>> names = decided_names(path);
  names.insert(in.whiteouts.begin(), in.whiteouts.end());
  for (const auto& [name, child] : in.children) names.insert(name);
  if (after) {
    for (const auto& [name, child] : after->children) names.insert(name);
  }
  Visited visited;
  std::size_t told = invalidations.size();
  for (const auto& name : names) {
    auto found = in.children.find(name);
    const Spot at{directory,
                  name,
                  join_path(path, name),
                  found == in.children.end() ? nullptr : found->second.inode,
                  child_of(before, name),
                  child_of(after, name)};
    bool is_there = false;
    bool is_directory = at.child && at.child->is_directory();
    if (has_put_below(at.path) && !is_directory) {
      PLAYFS_TRY(is_there, visit_to_be_directory(at));
    } else if (auto decided = decisions_.find(at.path); decided != decisions_.end()) {
      PLAYFS_TRY(is_there, visit_decided(at, *decided->second));
    } else if (!at.child) {
      is_there = visit_nothing(at);
    } else if (is_directory) {
      PLAYFS_TRY(is_there, visit_directory(at, yields));
    } else {
      PLAYFS_TRY(is_there, visit_file(at));
    }
    if (is_there) visited.has_names = true;
    else if (at.child) visited.lost_names = true;
  }
  bool names_changed = std::any_of(invalidations.begin() + static_cast<std::ptrdiff_t>(told), invalidations.end(),
                                   [&](const Invalidation& each) { return each.directory == directory; });
  if (names_changed && directory->has_row) {
    state_.rows->touch(directory->ino, brought_, now_);
    batch_.after_commit([directory, this] {
      directory->metadata.mtime = brought_;
      directory->metadata.ctime = now_;
    });
  }
  return visited;
}

Result<bool> Rebase::visit_directory(const Spot& at, bool yields) {
  bool file_comes = as_file(at.becomes) && follows_(at.path, nullptr);
  PLAYFS_TRY(Visited visited,
             visit(at.child, at.path, as_directory(at.before), as_directory(at.becomes), yields || file_comes));
  bool may_go = visited.lost_names || !at.child->has_row || yields || file_comes;
  if (as_directory(at.becomes) || visited.has_names || !may_go) {
    if (file_comes) obstructed.push_back(at.path);
    return true;
  }
  remove(at);
  if (file_comes) appear(at);
  else if (at.becomes) hide(at);  // a file that was deleted here before the directory came stays deleted
  return file_comes;
}

Result<bool> Rebase::visit_file(const Spot& at) {
  const FileEntry* file = as_file(at.becomes);
  PLAYFS_CHECK(state_.measure(*at.child));
  if (!follows_(at.path, at.child.get())) {
    const FileEntry* was = as_file(at.before);
    // A directory of the new base needs the place only if some of its content would appear.
    bool wants_place = file         ? !(was && was->same_content_and_mode(*file))
                       : at.becomes ? share_that_follows(at.path, *at.becomes) != Share::none
                                    : false;
    if (wants_place) obstructed.push_back(at.path);
    if (wants_place && !file) shut_out.insert(at.path);
    keep_bytes(at.child, at.path);
    return true;
  }
  if (!at.becomes) {
    remove(at);
    return false;
  }
  if (!file && share_that_follows(at.path, *at.becomes) != Share::all) {
    // Of the directory that comes back something stays deleted.
    lose_name(at.child);
    batch_.after_commit([this, at]() PLAYFS_REQUIRES(state_.mutex) { state_.detach(*at.parent, at.name); });
    put_directory(at);
    return true;
  }
  bool is_same = file && published_mode(*at.child) == file->mode &&
                 (at.child->is_below() ? at.child->lower.entry->same_content(*file)
                                       : state_.has_bytes_of(*at.child, at.path, *file));
  if (is_same) anchor(at.child, at.path, *file);
  else replace(at);
  return true;
}

Result<bool> Rebase::visit_decided(const Spot& at, const MergedPath& decided) {
  bool is_put = decided.action == MergedPath::Action::put;
  bool is_directory = at.child && at.child->is_directory();
  // A fifo, socket or device is local-only; the merge saw nothing there.
  if (at.child && !is_directory && !is_publishable(*at.child)) {
    if (is_put) obstructed.push_back(at.path);
    if (is_put) shut_out.insert(at.path);
    return true;
  }
  if (is_directory) {
    Spot there = at;
    if (is_put) there.becomes = nullptr;  // a file put there covers a directory of that name in the new base
    PLAYFS_TRY(bool stays, visit_directory(there, is_put));
    if (!is_put) return stays;
    if (stays) {
      obstructed.push_back(at.path);
      misplaced.insert(at.path);
      return true;
    }
  }
  if (!is_put) {
    if (at.becomes) {
      state_.touch(batch_, *at.parent, now_);
      if (!at.parent->directory->whiteouts.contains(at.name)) hide(at);
    }
    if (at.child) lose_name(at.child);
    if (at.child && !at.becomes && at.parent->has_row) state_.rows->drop_entry(at.parent->ino, at.name);
    if (at.child) {
      batch_.after_commit([this, at]() PLAYFS_REQUIRES(state_.mutex) { state_.detach(*at.parent, at.name); });
      invalidations.push_back({at.parent, at.name, at.child});
    }
    return false;
  }
  state_.touch(batch_, *at.parent, now_);
  InodePtr replaced = is_directory ? nullptr : at.child;
  if (replaced) lose_name(replaced);
  put_row(decided, replaced);
  state_.rows->put_entry(at.parent->ino, at.name, decided.content->ino);
  batch_.after_commit([this, at, replaced, fresh = decided.content]() PLAYFS_REQUIRES(state_.mutex) {
    std::uint64_t place = replaced ? at.parent->directory->children.find(at.name)->second.cookie : 0;
    if (replaced) state_.detach(*at.parent, at.name);
    state_.attach(*at.parent, at.name, fresh);
    if (replaced) state_.keep_place(*at.parent, at.name, place);
  });
  invalidations.push_back({at.parent, at.name, at.child});
  return true;
}

Result<bool> Rebase::visit_to_be_directory(const Spot& at) {
  if (at.child) {
    PLAYFS_CHECK(state_.measure(*at.child));
    bool goes = is_publishable(*at.child) &&
                (decisions_.contains(at.path) || (!as_file(at.becomes) && follows_(at.path, at.child.get())));
    if (!goes) {
      obstructed.push_back(at.path);
      misplaced.insert(at.path);
      return true;
    }
    lose_name(at.child);
    batch_.after_commit([this, at]() PLAYFS_REQUIRES(state_.mutex) { state_.detach(*at.parent, at.name); });
  }
  put_directory(at);
  return true;
}

void Rebase::put_directory(const Spot& at) {
  state_.touch(batch_, *at.parent, now_);
  InodePtr made = make_partial(*at.parent, at.name, at.path, at.becomes);
  batch_.after_commit([this, at, made]() PLAYFS_REQUIRES(state_.mutex) { state_.attach(*at.parent, at.name, made); });
  invalidations.push_back({at.parent, at.name, at.child});
}

bool Rebase::visit_nothing(const Spot& at) {
  Share share = at.becomes ? share_that_follows(at.path, *at.becomes) : Share::none;
  bool is_hidden = at.parent->directory->whiteouts.contains(at.name);
  if (at.becomes && share == Share::none) {
    if (!is_hidden) hide(at);
    return false;
  }
  if (is_hidden) {
    state_.rows->drop_entry(at.parent->ino, at.name);
    batch_.after_commit([at] { at.parent->directory->whiteouts.erase(at.name); });
  }
  if (!at.becomes) return false;
  if (share == Share::all) {
    appear(at);
    return true;
  }
  InodePtr partial = make_partial(*at.parent, at.name, at.path, at.becomes);
  batch_.after_commit([this, at, partial]()
                          PLAYFS_REQUIRES(state_.mutex) { state_.attach(*at.parent, at.name, partial); });
  invalidations.push_back({at.parent, at.name, nullptr});
  return true;
}

Rebase::Decisions::const_iterator Rebase::first_below(const std::string& path) const {
  return path.empty() ? decisions_.begin() : decisions_.lower_bound(path + '/');
}

bool Rebase::is_below(Decisions::const_iterator at, const std::string& path) const {
  return at != decisions_.end() && (path.empty() || at->first.starts_with(path + '/'));
}

bool Rebase::has_put_below(const std::string& path) const {
  for (auto at = first_below(path); is_below(at, path); ++at) {
    if (at->second->action == MergedPath::Action::put) return true;
  }
  return false;
}

std::set<std::string, std::less<>> Rebase::decided_names(const std::string& path) const {
  std::set<std::string, std::less<>> names;
  for (auto at = first_below(path); is_below(at, path); ++at) {
    std::string_view below = std::string_view(at->first).substr(path.empty() ? 0 : path.size() + 1);
    names.emplace(below.substr(0, below.find('/')));
  }
  return names;
}

}  // namespace playfs::stage
