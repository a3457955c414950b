#include "stage/rebase.h"

#include <algorithm>

namespace playfs::stage {

namespace {

const Tree::Child* child_of(const Tree::Directory* directory, std::string_view name) {
  if (!directory) return nullptr;
  auto found = directory->children.find(name);
  return found == directory->children.end() ? nullptr : &found->second;
}

const FileEntry* as_file(const Tree::Child* child) {
  const auto* file = child ? std::get_if<const FileEntry*>(child) : nullptr;
  return file ? *file : nullptr;
}

const Tree::Directory* as_directory(const Tree::Child* child) {
  const auto* directory = child ? std::get_if<std::unique_ptr<Tree::Directory>>(child) : nullptr;
  return directory ? directory->get() : nullptr;
}

}  // namespace

WallTime time_of_revision(const RevisionTree& revision, const Clock& clock) {
  return revision.revision.created_at == WallTime() ? clock.wall() : revision.revision.created_at;
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
    // As it will be when it is made anew, at the next start.
    Metadata& metadata = directory->metadata;
    metadata.atime = metadata.mtime = metadata.ctime = time_of(path);
  });
  // Where nobody looked yet nothing has to be told or moved.
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
    // Of a directory only what is to appear needs the place.
    bool wants_place = file      ? !(was && was->same_content_and_mode(*file))
                       : becomes ? share_that_follows(path, *becomes) != Share::none
                                 : false;
    if (wants_place) obstructed.push_back(path);
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
  if (is_directory) {
    PLAYFS_TRY(bool stays, visit_directory(parent, name, path, child, before, after, is_put));
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
    bool goes = decisions_.contains(path) || (!as_file(becomes) && follows_(path, child.get()));
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

void Rebase::put_row(const MergedPath& decided, const InodePtr& replaced) {
  // Another inode takes the name, as if an editor had renamed a new file over it. Changing the bytes of the old one
  // would keep descriptors going, but the kernel has worked out where an O_APPEND write goes before it asks us, and
  // whoever writes at an offset means the bytes that were there: both would write into the middle of what others did.
  // So those who have the old one open read on, and are refused when they write (see supersede).
  const InodePtr& fresh = decided.content;
  if (replaced && replaced->kind == Kind::file && fresh->kind == Kind::file) {
    bool runs = published_mode(*fresh) == FileMode::executable;
    unsigned permissions = replaced->metadata.permissions;
    if (runs != (published_mode(*replaced) == FileMode::executable)) {
      permissions &= ~0111U;
      if (runs) permissions |= (permissions & 0444U) >> 2 | 0100U;
    }
    fresh->metadata.permissions = permissions;
    fresh->metadata.uid = replaced->metadata.uid;
    fresh->metadata.gid = replaced->metadata.gid;
  }
  if (fresh->spool) state_.name_spool_file(batch_, *fresh->spool);
  state_.rows->put_inode(state_.row_of(*fresh));
  batch_.after_commit([fresh] {
    fresh->has_row = true;
    if (fresh->spool) fresh->spool->keep = true;
  });
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

void Rebase::lose_name(const InodePtr& file) {
  if (++names_lost_[file] < file->names.size()) return;
  if (file->has_row) state_.rows->drop_inode(file->ino);
  if (file->has_row && file->is_directory()) state_.rows->drop_whiteouts(file->ino);
  batch_.after_commit([this, file]() PLAYFS_NO_ANALYSIS { state_.release(*file); });
  supersede(file);
}

void Rebase::supersede(const InodePtr& inode) {
  std::string why = next_ == state_.base ? "what was staged of it was discarded"
                    : next_              ? "replaced by revision " + next_->revision.id.text()
                                         : "replaced by a base without files";
  batch_.after_commit([inode, why = std::move(why)] { inode->superseded = why; });
}

void Rebase::touch_what_lost_names() {
  for (const auto& [file, lost] : names_lost_) {
    if (lost == file->names.size()) continue;
    state_.rows->touch(file->ino, file->metadata.mtime, now_);
    batch_.after_commit([file = file, this] { file->metadata.ctime = now_; });
  }
}

void Rebase::remove(const InodePtr& parent, const std::string& name, const InodePtr& child) {
  lose_name(child);
  if (parent->has_row) state_.rows->drop_entry(parent->ino, name);
  batch_.after_commit([this, parent, name]() PLAYFS_NO_ANALYSIS { state_.detach(*parent, name); });
  invalidations.push_back({parent, name, child});
}

void Rebase::appear(const InodePtr& parent, const std::string& name, const std::string& path,
                    const Tree::Child& child) {
  batch_.after_commit([this, parent, name, path, &child]()
                          PLAYFS_NO_ANALYSIS { state_.attach(*parent, name, state_.make_lower(path, child, next_)); });
  if (invalidations.empty() || invalidations.back().directory != parent || invalidations.back().name != name)
    invalidations.push_back({parent, name, nullptr});
}

void Rebase::replace(const InodePtr& parent, const std::string& name, const std::string& path, const InodePtr& child,
                     const Tree::Child& by) {
  bool is_only_name = child->names.size() == 1;
  if (is_only_name && child->has_row && as_file(&by)) return replace_row(parent, name, path, child, by);
  std::uint64_t ino = is_only_name && !child->has_row ? child->ino : 0;
  lose_name(child);
  if (parent->has_row) state_.rows->drop_entry(parent->ino, name);
  batch_.after_commit([this, parent, name, path, &by, ino]() PLAYFS_NO_ANALYSIS {
    std::uint64_t place = parent->directory->children.find(name)->second.cookie;
    state_.detach(*parent, name);
    state_.attach(*parent, name,
                  ino != 0 ? state_.make_lower(path, by, next_, ino) : state_.make_lower(path, by, next_));
    state_.keep_place(*parent, name, place);
  });
  invalidations.push_back({parent, name, child});
}

void Rebase::replace_row(const InodePtr& parent, const std::string& name, const std::string& path,
                         const InodePtr& child, const Tree::Child& by) {
  const FileEntry& entry = *as_file(&by);
  InodePtr fresh = state_.make_lower(path, by, next_, child->ino);
  fresh->metadata.uid = child->metadata.uid;
  fresh->metadata.gid = child->metadata.gid;
  if (child->kind == Kind::file && fresh->kind == Kind::file) {
    unsigned permissions = child->metadata.permissions & ~0111U;
    if (entry.mode == FileMode::executable) permissions |= (permissions & 0444U) >> 2 | 0100U;
    fresh->metadata.permissions = permissions;
  }
  bool only_mode = child->is_below() && same_content(*child->lower.entry, entry);
  fresh->metadata.mtime = only_mode ? child->metadata.mtime : time_of(path);
  fresh->metadata.atime = fresh->metadata.mtime;
  fresh->metadata.ctime = now_;
  InodeRow row = state_.row_of(*fresh);
  row.lower_revision.clear();
  state_.rows->put_inode(row);
  batch_.after_commit([this, parent, name, child, fresh]() PLAYFS_NO_ANALYSIS {
    std::uint64_t place = parent->directory->children.find(name)->second.cookie;
    state_.release(*child);
    state_.detach(*parent, name);
    fresh->has_row = true;
    state_.attach(*parent, name, fresh);
    state_.keep_place(*parent, name, place);
  });
  supersede(child);
  invalidations.push_back({parent, name, child});
}

void Rebase::hide(const InodePtr& parent, const std::string& name) {
  state_.rows->put_entry(parent->ino, name, 0);
  batch_.after_commit([parent, name] { parent->directory->whiteouts.insert(name); });
}

Rebase::Share Rebase::share_that_follows(const std::string& path, const Tree::Child& child) const {
  if (as_file(&child)) return follows_(path, nullptr) ? Share::all : Share::none;
  bool any = false, every = true;
  for (const auto& [name, below] : as_directory(&child)->children) {
    Share share = share_that_follows(join_path(path, name), below);
    any = any || share != Share::none;
    every = every && share == Share::all;
  }
  return every ? Share::all : any ? Share::some : Share::none;
}

InodePtr Rebase::make_partial(Inode& parent, const std::string& name, const std::string& path,
                              const Tree::Child* lower) {
  std::uint64_t ino = state_.take_ino(batch_);
  static const Tree::Child nothing = std::make_unique<Tree::Directory>();
  InodePtr partial = state_.make_lower(path, as_directory(lower) ? *lower : nothing, next_, ino);
  const LowerDirectory* shown = as_directory(lower);
  partial->directory->lower = shown;
  WallTime time = shown ? time_of(path) : now_;
  partial->metadata.atime = partial->metadata.mtime = partial->metadata.ctime = time;
  partial->has_row = true;
  state_.rows->put_inode(state_.row_of(*partial));
  state_.rows->put_entry(parent.ino, name, ino);
  std::set<std::string, std::less<>> names = decided_names(path);
  if (shown) {
    for (const auto& [below_name, below] : shown->children) names.insert(below_name);
  }
  auto attach = [&](const std::string& below_name, const InodePtr& inner) {
    batch_.after_commit([this, partial, below_name, inner]()
                            PLAYFS_NO_ANALYSIS { state_.attach(*partial, below_name, inner); });
  };
  for (const auto& below_name : names) {
    const Tree::Child* below = child_of(shown, below_name);
    std::string below_path = join_path(path, below_name);
    auto decided = decisions_.find(below_path);
    Share share = below ? share_that_follows(below_path, *below) : Share::none;
    if (has_put_below(below_path) || (below && share == Share::some)) {
      attach(below_name, make_partial(*partial, below_name, below_path, below));
    } else if (decided != decisions_.end() && decided->second->action == MergedPath::Action::put) {
      put_row(*decided->second, nullptr);
      state_.rows->put_entry(ino, below_name, decided->second->content->ino);
      attach(below_name, decided->second->content);
    } else if (below && share == Share::none) {
      state_.rows->put_entry(ino, below_name, 0);
      partial->directory->whiteouts.insert(below_name);
    }
  }
  return partial;
}

void Rebase::anchor(const InodePtr& file, const std::string& path, const FileEntry& entry) {
  bool is_frozen = file->kind == Kind::file && file->spool && state_.frozen.contains(file->spool->number());
  if (!file->is_below() && !is_frozen) return;  // bytes of its own that happen to be the same
  if (!anchored_.insert(file.get()).second) return;
  bool is_anchored = file->is_below() && file->lower.path == path && file->lower.revision == state_.base &&
                     !rescued_.contains(file.get());
  if (file->has_row && !is_anchored) {
    InodeRow row = state_.row_of(*file);
    row.spool = 0;
    row.lower_path = path;
    row.lower_revision.clear();
    state_.rows->put_inode(row);
  }
  batch_.after_commit([this, file, path, &entry] {
    file->lower = {next_, path, &entry};
    file->spool = nullptr;
    file->measured = file->times_ahead = false;
    ++file->generation;
  });
}

void Rebase::keep_bytes(const InodePtr& file, const std::string& path) {
  if (!file->is_below() || anchored_.contains(file.get())) return;
  std::vector<std::string> candidates = {path, file->lower.path};
  if (state_.pending) {
    for (const auto& [frozen_path, frozen] : state_.pending->files) {
      if (frozen.published && same_content(*frozen.published, *file->lower.entry)) candidates.push_back(frozen_path);
    }
  }
  for (const auto& candidate : candidates) {
    const FileEntry* entry = next_ ? next_->tree.file_at(candidate) : nullptr;
    if (entry && same_content(*entry, *file->lower.entry)) return anchor(file, candidate, *entry);
  }
  if (file->lower.revision != state_.base || !rescued_.insert(file.get()).second) return;
  const Revision& revision = file->lower.revision->revision;
  state_.rows->put_rescued({revision.id.text(), revision.project.text(), file->lower.revision->tree.manifest().tx,
                            file->lower.path, *file->lower.entry});
  InodeRow row = state_.row_of(*file);
  row.lower_revision = revision.id.text();
  state_.rows->put_inode(row);
}

}  // namespace playfs::stage
