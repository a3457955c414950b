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
  batch_.after_commit([this]() PLAYFS_NO_ANALYSIS {
    state_.path_times = times_;
    state_.base_time = default_time_;
  });
  state_.rows->clear_opaque();
  PLAYFS_TRY([[maybe_unused]] Visited root,
             visit(state_.root, "", state_.base_root(), next_ ? &next_->tree.root() : nullptr, false));
  touch_what_lost_names();
  state_.rows->drop_unused_rescued();
  batch_.after_commit([this]() PLAYFS_NO_ANALYSIS {
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
      if (!old || !same_content(*old, entry)) times_[path] = brought_;
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
  batch_.after_commit([directory, after, this, path]() PLAYFS_NO_ANALYSIS {
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
    InodePtr child = found == in.children.end() ? nullptr : found->second.inode;
    std::string below = join_path(path, name);
    bool is_there = false;
    bool is_directory = child && child->is_directory();
    if (has_put_below(below) && !is_directory) {
      PLAYFS_TRY(is_there, visit_to_be_directory(directory, name, below, child, after));
    } else if (auto decided = decisions_.find(below); decided != decisions_.end()) {
      PLAYFS_TRY(is_there, visit_decided(directory, name, below, child, before, after, *decided->second));
    } else if (!child) {
      is_there = visit_nothing(directory, name, below, after);
    } else if (child->is_directory()) {
      PLAYFS_TRY(is_there, visit_directory(directory, name, below, child, before, after, yields));
    } else {
      PLAYFS_TRY(is_there, visit_file(directory, name, below, child, before, after));
    }
    if (is_there) visited.has_names = true;
    else if (child) visited.lost_names = true;
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

Result<bool> Rebase::visit_directory(const InodePtr& parent, const std::string& name, const std::string& path,
                                     const InodePtr& child, const LowerDirectory* before, const LowerDirectory* after,
                                     bool yields) {
  const Tree::Child* becomes = child_of(after, name);
  bool file_comes = as_file(becomes) && follows_(path, nullptr);
  PLAYFS_TRY(Visited visited,
             visit(child, path, as_directory(child_of(before, name)), as_directory(becomes), yields || file_comes));
  bool may_go = visited.lost_names || !child->has_row || yields || file_comes;
  if (as_directory(becomes) || visited.has_names || !may_go) {
    if (file_comes) obstructed.push_back(path);
    return true;
  }
  remove(parent, name, child);
  if (file_comes) appear(parent, name, path, *becomes);
  else if (becomes) hide(parent, name);  // a file that was deleted here before the directory came stays deleted
  return file_comes;
}

Result<bool> Rebase::visit_file(const InodePtr& parent, const std::string& name, const std::string& path,
                                const InodePtr& child, const LowerDirectory* before, const LowerDirectory* after) {
  const Tree::Child* becomes = child_of(after, name);
  const FileEntry* file = as_file(becomes);
  PLAYFS_CHECK(state_.measure(*child));
  if (!follows_(path, child.get())) {
    const FileEntry* was = as_file(child_of(before, name));
    // Of a directory only content that would appear needs the place.
    bool wants_place = file      ? !(was && was->same_content_and_mode(*file))
                       : becomes ? share_that_follows(path, *becomes) != Share::none
                                 : false;
    if (wants_place) obstructed.push_back(path);
    if (wants_place && !file) shut_out.insert(path);
    keep_bytes(child, path);
    return true;
  }
  if (!becomes) {
    remove(parent, name, child);
    return false;
  }
  bool is_same =
      file && published_mode(*child) == file->mode &&
      (child->is_below() ? same_content(*child->lower.entry, *file) : state_.has_bytes_of(*child, path, *file));
  if (is_same) anchor(child, path, *file);
  else replace(parent, name, path, child, *becomes);
  return true;
}

Result<bool> Rebase::visit_decided(const InodePtr& parent, const std::string& name, const std::string& path,
                                   const InodePtr& child, const LowerDirectory* before, const LowerDirectory* after,
                                   const MergedPath& decided) {
  const Tree::Child* becomes = child_of(after, name);
  bool is_put = decided.action == MergedPath::Action::put;
  bool is_directory = child && child->is_directory();
  // A fifo, socket or device is local-only; the merge saw nothing there.
  if (child && !is_directory && !is_publishable(*child)) {
    if (is_put) obstructed.push_back(path);
    if (is_put) shut_out.insert(path);
    return true;
  }
  if (is_directory) {
    // A file put there covers a directory of that name in the new base.
    PLAYFS_TRY(bool stays, visit_directory(parent, name, path, child, before, is_put ? nullptr : after, is_put));
    if (!is_put) return stays;
    if (stays) {
      obstructed.push_back(path);
      misplaced.insert(path);
      return true;
    }
  }
  if (!is_put) {
    if (becomes) {
      state_.touch(batch_, *parent, now_);
      if (!parent->directory->whiteouts.contains(name)) hide(parent, name);
    }
    if (child) lose_name(child);
    if (child && !becomes && parent->has_row) state_.rows->drop_entry(parent->ino, name);
    if (child) {
      batch_.after_commit([this, parent, name]() PLAYFS_NO_ANALYSIS { state_.detach(*parent, name); });
      invalidations.push_back({parent, name, child});
    }
    return false;
  }
  state_.touch(batch_, *parent, now_);
  InodePtr replaced = is_directory ? nullptr : child;
  if (replaced) lose_name(replaced);
  put_row(decided, replaced);
  state_.rows->put_entry(parent->ino, name, decided.content->ino);
  batch_.after_commit([this, parent, name, replaced, fresh = decided.content]() PLAYFS_NO_ANALYSIS {
    std::uint64_t place = replaced ? parent->directory->children.find(name)->second.cookie : 0;
    if (replaced) state_.detach(*parent, name);
    state_.attach(*parent, name, fresh);
    if (replaced) state_.keep_place(*parent, name, place);
  });
  invalidations.push_back({parent, name, child});
  return true;
}

Result<bool> Rebase::visit_to_be_directory(const InodePtr& parent, const std::string& name, const std::string& path,
                                           const InodePtr& child, const LowerDirectory* after) {
  const Tree::Child* becomes = child_of(after, name);
  if (child) {
    PLAYFS_CHECK(state_.measure(*child));
    bool goes =
        is_publishable(*child) && (decisions_.contains(path) || (!as_file(becomes) && follows_(path, child.get())));
    if (!goes) {
      obstructed.push_back(path);
      misplaced.insert(path);
      return true;
    }
    lose_name(child);
    batch_.after_commit([this, parent, name]() PLAYFS_NO_ANALYSIS { state_.detach(*parent, name); });
  }
  state_.touch(batch_, *parent, now_);
  InodePtr made = make_partial(*parent, name, path, becomes);
  batch_.after_commit([this, parent, name, made]() PLAYFS_NO_ANALYSIS { state_.attach(*parent, name, made); });
  invalidations.push_back({parent, name, child});
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

bool Rebase::visit_nothing(const InodePtr& parent, const std::string& name, const std::string& path,
                           const LowerDirectory* after) {
  const Tree::Child* becomes = child_of(after, name);
  Share share = becomes ? share_that_follows(path, *becomes) : Share::none;
  bool is_hidden = parent->directory->whiteouts.contains(name);
  if (becomes && share == Share::none) {
    if (!is_hidden) hide(parent, name);
    return false;
  }
  if (is_hidden) {
    state_.rows->drop_entry(parent->ino, name);
    batch_.after_commit([parent, name] { parent->directory->whiteouts.erase(name); });
  }
  if (!becomes) return false;
  if (share == Share::all) {
    appear(parent, name, path, *becomes);
    return true;
  }
  InodePtr partial = make_partial(*parent, name, path, becomes);
  batch_.after_commit([this, parent, name, partial]() PLAYFS_NO_ANALYSIS { state_.attach(*parent, name, partial); });
  invalidations.push_back({parent, name, nullptr});
  return true;
}

}  // namespace playfs::stage
