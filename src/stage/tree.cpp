// Names in memory, and the rows behind them.
#include <algorithm>

#include "base/log.h"
#include "stage/stage_state.h"

namespace playfs::stage {

std::string join_path(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty()) path += '/';
  return path += name;
}

WallTime Stage::State::path_time(std::string_view path) const {
  auto found = path_times.find(path);
  return found == path_times.end() ? base_time : found->second;
}

std::optional<std::string> Stage::State::path(const Inode& inode) const {
  std::vector<const std::string*> names;
  for (const Inode* at = &inode; at != root.get(); at = at->names[0].directory) {
    if (at->names.empty()) return std::nullopt;
    names.push_back(&at->names[0].text);
  }
  std::string path;
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (!path.empty()) path += '/';
    path += **name;
  }
  return path;
}

void Stage::State::attach(Inode& directory, std::string_view name, const InodePtr& inode) {
  Directory& in = *directory.directory;
  auto child = in.children.emplace(std::string(name), Child{inode, ++in.last_cookie}).first;
  in.by_cookie.emplace(child->second.cookie, &child->first);
  inode->names.push_back({&directory, std::string(name)});
  if (inode->is_directory()) ++in.subdirectories;
  by_ino[inode->ino] = inode.get();
  auto whiteout = in.whiteouts.find(name);
  if (whiteout != in.whiteouts.end()) in.whiteouts.erase(whiteout);
}

InodePtr Stage::State::detach(Inode& directory, std::string_view name) {
  Directory& in = *directory.directory;
  auto child = in.children.find(name);
  InodePtr inode = std::move(child->second.inode);
  in.by_cookie.erase(child->second.cookie);
  in.children.erase(child);
  auto& names = inode->names;
  names.erase(std::find_if(names.begin(), names.end(),
                           [&](const Name& each) { return each.directory == &directory && each.text == name; }));
  if (inode->is_directory()) --in.subdirectories;
  if (names.empty()) {
    auto known = by_ino.find(inode->ino);
    if (known != by_ino.end() && known->second == inode.get()) by_ino.erase(known);
  }
  return inode;
}

void Stage::State::keep_place(Inode& directory, std::string_view name, std::uint64_t cookie) {
  Directory& in = *directory.directory;
  auto child = in.children.find(name);
  in.by_cookie.erase(std::exchange(child->second.cookie, cookie));
  in.by_cookie.emplace(cookie, &child->first);
}

InodePtr Stage::State::make_lower(const std::string& path, const Tree::Child& child, RevisionTreePtr revision) {
  const std::uint64_t own = numbers.ino_of(path);
  std::uint64_t ino = own;
  // Taken if a file that was published under this path lives on under another.
  while (by_ino.contains(ino)) ino = Numbers::ino_after(ino);
  InodePtr inode = make_lower(path, child, std::move(revision), ino);
  if (ino != own) unrecorded.push_back(inode);
  return inode;
}

InodePtr Stage::State::make_lower(const std::string& path, const Tree::Child& child, RevisionTreePtr revision,
                                  std::uint64_t ino) {
  const auto* file = std::get_if<const FileEntry*>(&child);
  Kind kind = !file ? Kind::directory : (*file)->mode == FileMode::symlink ? Kind::symlink : Kind::file;
  auto inode = std::make_shared<Inode>(ino, kind);
  WallTime time = path_time(path);
  inode->metadata = {0777, options.uid, options.gid, time, time, time};
  if (file) {
    if ((*file)->mode == FileMode::regular) inode->metadata.permissions = 0666;
    inode->lower = {std::move(revision), path, *file};
  } else {
    inode->directory = std::make_unique<Directory>();
    inode->directory->lower = std::get<std::unique_ptr<Tree::Directory>>(child).get();
  }
  if (kind != Kind::symlink) inode->metadata.permissions &= ~options.umask;
  return inode;
}

void Stage::State::load_directory(Inode& directory) {
  load_names(directory);
  // During a batch this is left to the next lookup; unrecorded inodes may be gone by then.
  if (!unrecorded.empty() && !rows->has_batch()) record_numbers();
}

void Stage::State::record_numbers() {
  Batch batch = rows->begin();
  for (const auto& each : std::exchange(unrecorded, {})) {
    InodePtr inode = each.lock();
    if (inode && path(*inode)) secure(batch, *inode);
  }
  if (auto recorded = batch.commit(); !recorded)
    log_warning("an inode number in a work tree may change at the next start: " + recorded.error().message);
}

void Stage::State::load_names(Inode& directory) {
  Directory& in = *directory.directory;
  if (in.loaded) return;
  in.loaded = true;
  if (!in.lower) return;
  auto above = path(directory);
  if (!above) return;
  for (const auto& [name, child] : in.lower->children) {
    if (in.children.contains(name) || in.whiteouts.contains(name)) continue;
    std::string below = join_path(*above, name);
    attach(directory, name, make_lower(below, child, base));
  }
}

InodePtr Stage::State::find(Inode& directory, std::string_view name) {
  load_directory(directory);
  auto child = directory.directory->children.find(name);
  return child == directory.directory->children.end() ? nullptr : child->second.inode;
}

Stage::State::Place Stage::State::find(std::string_view path) {
  Place place{root, root};
  while (place.inode && !path.empty()) {
    place.deepest = place.inode;
    auto slash = path.find('/');
    place.inode = place.inode->is_directory() ? find(*place.inode, path.substr(0, slash)) : nullptr;
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  if (place.inode) place.deepest = place.inode;
  return place;
}

Status Stage::State::check_directory(const Inode& directory, std::string_view name) const {
  if (!directory.is_directory()) return fail(ErrorCode::not_a_directory, "not a directory");
  if (name.size() > kMaxComponentLength) return fail(ErrorCode::name_too_long, "the name is longer than 255 bytes");
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos || name.find('\0') != name.npos)
    return fail(ErrorCode::invalid_argument, "not a valid file name");
  return {};
}

Result<InodePtr> Stage::State::existing(Inode& directory, std::string_view name) {
  PLAYFS_CHECK(check_directory(directory, name));
  InodePtr inode = find(directory, name);
  if (!inode) return fail(ErrorCode::not_found, "no such file or directory");
  return inode;
}

bool Stage::State::covers_lower(const Inode& directory, std::string_view name) {
  const auto* lower = directory.directory->lower;
  return lower && lower->children.find(name) != lower->children.end();
}

InodeRow Stage::State::row_of(const Inode& inode) const {
  InodeRow row;
  row.ino = inode.ino;
  row.kind = inode.kind;
  row.metadata = inode.metadata;
  row.target = inode.target;
  row.device = inode.device;
  if (inode.spool) row.spool = inode.spool->number();
  if (inode.directory) row.opaque = inode.directory->opaque;
  if (inode.is_below()) {
    row.lower_path = inode.lower.path;
    if (inode.lower.revision != base) row.lower_revision = inode.lower.revision->revision.id.text();
  }
  return row;
}

void Stage::State::secure(Batch& batch, Inode& inode) {
  for (Inode* at = &inode; !at->has_row && at != root.get() && batch.secures(at->ino); at = at->names[0].directory) {
    rows->put_inode(row_of(*at));
    rows->put_entry(at->names[0].directory->ino, at->names[0].text, at->ino);
    batch.after_commit([at] { at->has_row = true; });
  }
}

void Stage::State::secure_tree(Batch& batch, Inode& top) {
  std::vector<Inode*> left = {&top};
  while (!left.empty()) {
    Inode& directory = *left.back();
    left.pop_back();
    Directory& in = *directory.directory;
    if (in.opaque) continue;  // and so is everything below
    load_names(directory);
    InodeRow row = row_of(directory);
    row.opaque = true;
    rows->put_inode(row);
    rows->drop_whiteouts(directory.ino);
    for (auto& [name, child] : in.children) {
      if (child.inode->is_directory()) left.push_back(child.inode.get());
      if (child.inode->has_row) continue;
      rows->put_inode(row_of(*child.inode));
      rows->put_entry(directory.ino, name, child.inode->ino);
      batch.after_commit([inode = child.inode.get()] { inode->has_row = true; });
    }
    batch.after_commit([&in] {
      in.opaque = true;
      in.lower = nullptr;
      in.whiteouts.clear();
    });
  }
}

void Stage::State::touch(Batch& batch, Inode& directory, WallTime now) {
  secure(batch, directory);
  rows->touch(directory.ino, now, now);
  batch.after_commit([&directory, now] { directory.metadata.mtime = directory.metadata.ctime = now; });
}

void Stage::State::drop_name(Batch& batch, Inode& directory, std::string_view name) {
  if (!covers_lower(directory, name)) return rows->drop_entry(directory.ino, name);
  rows->put_entry(directory.ino, name, 0);
  batch.after_commit([&directory, text = std::string(name)] { directory.directory->whiteouts.insert(text); });
}

void Stage::State::drop_link(Batch& batch, Inode& inode, WallTime now) {
  if (inode.names.size() > 1) {
    rows->touch(inode.ino, inode.metadata.mtime, now);
    batch.after_commit([&inode, now] { inode.metadata.ctime = now; });
    return;
  }
  if (inode.has_row) rows->drop_inode(inode.ino);
  end_replacement(batch, inode);
  if (inode.is_directory() && inode.has_row) rows->drop_whiteouts(inode.ino);
  batch.after_commit([this, &inode, now]() PLAYFS_REQUIRES(mutex) {
    inode.metadata.ctime = now;
    release(inode);
  });
}

SpoolFilePtr Stage::State::new_spool_file() {
  auto file = std::make_shared<SpoolFile>(spool, numbers.take_spool(), false);
  file->is_made = false;
  return file;
}

void Stage::State::release(Inode& inode) {
  inode.has_row = false;
  if (inode.spool && !frozen.contains(inode.spool->number())) inode.spool->keep = false;
}

}  // namespace playfs::stage
