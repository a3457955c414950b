// The second half of Rebase: applies the decision about a path to its inode, rows and name.
#include "stage/rebase.h"

namespace playfs::stage {

void Rebase::put_row(const MergedPath& decided, const InodePtr& replaced) {
  // Another inode takes the name, as if an editor had renamed a new file over it. Changing the old inode's bytes would
  // keep descriptors usable, but the kernel computes the offset of an O_APPEND write before it calls us, and a write at
  // an offset refers to the old bytes: both would land in the middle of other people's changes. So open handles of the
  // old inode can read, but not write (see supersede).
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
  if (fresh->spool && fresh->spool->is_made && state_.measure(*fresh))
    state_.put_size(batch_, fresh->spool, fresh->size, fresh->size);
  batch_.after_commit([fresh] {
    fresh->has_row = true;
    if (fresh->spool) fresh->spool->keep = true;
  });
}

void Rebase::lose_name(const InodePtr& file) {
  if (++names_lost_[file] < file->names.size()) return;
  if (file->has_row) state_.rows->drop_inode(file->ino);
  if (file->has_row && file->is_directory()) state_.rows->drop_whiteouts(file->ino);
  batch_.after_commit([this, file]() PLAYFS_REQUIRES(state_.mutex) { state_.release(*file); });
  supersede(file);
}

void Rebase::supersede(const InodePtr& inode) {
  std::string why = !replaced_by.empty()   ? replaced_by
                    : next_ == state_.base ? "its staged changes were discarded"
                    : next_                ? "replaced by revision " + next_->revision.id.text()
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

void Rebase::remove(const Spot& at) {
  lose_name(at.child);
  if (at.parent->has_row) state_.rows->drop_entry(at.parent->ino, at.name);
  batch_.after_commit([this, at]() PLAYFS_REQUIRES(state_.mutex) { state_.detach(*at.parent, at.name); });
  invalidations.push_back({at.parent, at.name, at.child});
}

void Rebase::appear(const Spot& at) {
  batch_.after_commit([this, at]() PLAYFS_REQUIRES(state_.mutex) {
    state_.attach(*at.parent, at.name, state_.make_lower(at.path, *at.becomes, next_));
  });
  if (invalidations.empty() || invalidations.back().directory != at.parent || invalidations.back().name != at.name)
    invalidations.push_back({at.parent, at.name, nullptr});
}

void Rebase::replace(const Spot& at) {
  bool is_only_name = at.child->names.size() == 1;
  if (is_only_name && at.child->has_row && as_file(at.becomes)) return replace_row(at);
  std::uint64_t ino = is_only_name && !at.child->has_row ? at.child->ino : 0;
  lose_name(at.child);
  if (at.parent->has_row) state_.rows->drop_entry(at.parent->ino, at.name);
  batch_.after_commit([this, at, ino]() PLAYFS_REQUIRES(state_.mutex) {
    std::uint64_t place = at.parent->directory->children.find(at.name)->second.cookie;
    state_.detach(*at.parent, at.name);
    state_.attach(*at.parent, at.name,
                  ino != 0 ? state_.make_lower(at.path, *at.becomes, next_, ino)
                           : state_.make_lower(at.path, *at.becomes, next_));
    state_.keep_place(*at.parent, at.name, place);
  });
  invalidations.push_back({at.parent, at.name, at.child});
}

void Rebase::replace_row(const Spot& at) {
  const InodePtr& child = at.child;
  const FileEntry& entry = *as_file(at.becomes);
  InodePtr fresh = state_.make_lower(at.path, *at.becomes, next_, child->ino);
  fresh->metadata.uid = child->metadata.uid;
  fresh->metadata.gid = child->metadata.gid;
  if (child->kind == Kind::file && fresh->kind == Kind::file) {
    unsigned permissions = child->metadata.permissions & ~0111U;
    if (entry.mode == FileMode::executable) permissions |= (permissions & 0444U) >> 2 | 0100U;
    fresh->metadata.permissions = permissions;
  }
  bool only_mode = child->is_below() && child->lower.entry->same_content(entry);
  fresh->metadata.mtime = only_mode ? child->metadata.mtime : time_of(at.path);
  fresh->metadata.atime = fresh->metadata.mtime;
  fresh->metadata.ctime = now_;
  InodeRow row = state_.row_of(*fresh);
  row.lower_revision.clear();
  state_.rows->put_inode(row);
  batch_.after_commit([this, at, fresh]() PLAYFS_REQUIRES(state_.mutex) {
    std::uint64_t place = at.parent->directory->children.find(at.name)->second.cookie;
    state_.release(*at.child);
    state_.detach(*at.parent, at.name);
    fresh->has_row = true;
    state_.attach(*at.parent, at.name, fresh);
    state_.keep_place(*at.parent, at.name, place);
  });
  supersede(child);
  invalidations.push_back({at.parent, at.name, child});
}

void Rebase::hide(const Spot& at) {
  state_.rows->put_entry(at.parent->ino, at.name, 0);
  batch_.after_commit([at] { at.parent->directory->whiteouts.insert(at.name); });
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
  std::uint64_t ino = state_.numbers.take_ino(batch_);
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
                            PLAYFS_REQUIRES(state_.mutex) { state_.attach(*partial, below_name, inner); });
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
  if (!file->is_below() && !is_frozen) return;  // local bytes that happen to be the same
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
      if (frozen.published && frozen.published->same_content(*file->lower.entry)) candidates.push_back(frozen_path);
    }
  }
  for (const auto& candidate : candidates) {
    const FileEntry* entry = next_ ? next_->tree.file_at(candidate) : nullptr;
    if (entry && entry->same_content(*file->lower.entry)) return anchor(file, candidate, *entry);
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
