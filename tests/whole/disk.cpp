#include "whole/disk.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <utility>

namespace playfs::sim {

namespace {

void put(std::string& bytes, std::size_t at, std::string_view data) {
  if (bytes.size() < at + data.size()) bytes.resize(at + data.size());
  bytes.replace(at, data.size(), data);
}

void apply(std::string& bytes, const DiskFile::Change& change) {
  if (change.is_size) bytes.resize(change.at);
  else put(bytes, change.at, change.bytes);
}

void apply(std::map<std::string, DiskFilePtr>& names, const DiskFile::Renaming& renaming) {
  if (!renaming.removed.empty()) names.erase(renaming.removed);
  if (!renaming.made.empty()) names[renaming.made] = renaming.file;
}

/// SQLite's shared memory, and the reserve for a full disk.
bool is_of_the_process(const std::string& name) { return name.ends_with("-shm") || name == "reserve"; }

void copy_below(const DiskFile& from, DiskFile& to) {
  for (const auto& [name, file] : from.names) {
    if (is_of_the_process(name)) continue;
    // With a new inode number, by which SQLite knows which files are open in this process.
    auto copy = make_disk_file(file->is_directory, file->mode, file->forgets);
    copy->modified = file->modified;
    copy->accessed = file->accessed;
    copy->size = file->size;
    copy->bytes = file->bytes;
    copy->safe_bytes = file->safe_bytes;
    copy->changes = file->changes;
    copy_below(*file, *copy);
    to.names.emplace(name, std::move(copy));
  }
  if (!from.forgets) return;
  // Files without a name are lost to this copy, except a synced one; at worst they come back empty.
  auto copy_of = [&](const std::string& name, const DiskFilePtr& file) {
    auto here = from.names.find(name);
    return here != from.names.end() && here->second == file ? to.names[name] : file;
  };
  for (const auto& [name, file] : from.safe_names)
    if (!is_of_the_process(name)) to.safe_names[name] = copy_of(name, file);
  for (const auto& renaming : from.renamings)
    if (!is_of_the_process(renaming.made) && !is_of_the_process(renaming.removed))
      to.renamings.push_back({renaming.removed, renaming.made, copy_of(renaming.made, renaming.file)});
}

/// `luck`: percentage of unsynced changes that survive.
DiskFilePtr after_power_cut(const DiskFile& file, std::uint64_t luck, const std::function<std::uint64_t()>& number) {
  auto left = make_disk_file(file.is_directory, file.mode, true);
  left->modified = file.modified;
  left->accessed = file.accessed;
  if (!file.is_directory) {
    left->bytes = file.safe_bytes;
    for (const auto& change : file.changes)
      if (number() % 100 < luck) apply(left->bytes, change);
    left->size = left->bytes.size();
    left->safe_bytes = left->bytes;
    return left;
  }
  auto names = file.safe_names;
  std::size_t kept = luck == 0 ? 0 : luck == 100 ? file.renamings.size() : number() % (file.renamings.size() + 1);
  for (std::size_t i = 0; i < kept; ++i) apply(names, file.renamings[i]);
  for (const auto& [name, below] : names)
    if (!is_of_the_process(name)) left->names.emplace(name, after_power_cut(*below, luck, number));
  left->safe_names = left->names;
  return left;
}

void make_forgetful(DiskFile& file) {
  file.forgets = true;
  file.safe_bytes = file.bytes;
  file.safe_names = file.names;
  for (const auto& [name, below] : file.names) make_forgetful(*below);
}

}  // namespace

DiskFilePtr make_disk_file(bool is_directory, mode_t mode, bool forgets) {
  static ino_t last = 0;
  auto file = std::make_shared<DiskFile>();
  file->is_directory = is_directory;
  file->forgets = forgets;
  file->mode = mode;
  file->number = ++last;
  clock_gettime(CLOCK_REALTIME, &file->modified);
  file->accessed = file->modified;
  return file;
}

void DiskFile::write(std::size_t at, std::string_view data) {
  sim::put(bytes, at, data);
  size = std::max(size, bytes.size());
  clock_gettime(CLOCK_REALTIME, &modified);
  if (forgets) changes.push_back({false, at, std::string(data)});
}

void DiskFile::resize(std::size_t to) {
  if (bytes.size() > to) bytes.resize(to);
  size = to;
  clock_gettime(CLOCK_REALTIME, &modified);
  if (forgets) changes.push_back({true, to, {}});
}

void DiskFile::put(const std::string& name, DiskFilePtr file) {
  if (forgets) renamings.push_back({{}, name, file});
  names[name] = std::move(file);
}

void DiskFile::remove(const std::string& name) {
  if (forgets) renamings.push_back({name, {}, nullptr});
  names.erase(name);
}

void DiskFile::sync() {
  if (!forgets) return;
  if (is_directory) {
    renamings.clear();
    safe_names = names;
    return;
  }
  for (const auto& change : changes) apply(safe_bytes, change);
  changes.clear();
}

Disks& Disks::all() {
  static Disks disks;
  return disks;
}

Disks::Disks() : root_(make_disk_file(true, 0755, false)) {}

DiskFilePtr Disks::find(std::string_view path) const {
  if (!path.starts_with(kRoot)) return nullptr;
  DiskFilePtr at = root_;
  path.remove_prefix(kRoot.size());
  while (at) {
    while (path.starts_with('/')) path.remove_prefix(1);
    if (path.empty()) return at;
    auto slash = std::min(path.find('/'), path.size());
    auto found = at->names.find(std::string(path.substr(0, slash)));
    at = found == at->names.end() ? nullptr : found->second;
    path.remove_prefix(slash);
  }
  return nullptr;
}

DiskFilePtr Disks::make_directory(const std::string& path, bool forgets) {
  if (path.size() <= kRoot.size()) return root_;
  auto slash = path.rfind('/');
  auto above = find(path.substr(0, slash));
  if (!above) above = make_directory(path.substr(0, slash));
  auto made = make_disk_file(true, 0700, forgets);
  above->names[path.substr(slash + 1)] = made;
  return made;
}

void Disks::remove(const std::string& path) {
  auto slash = path.rfind('/');
  if (auto above = find(path.substr(0, slash))) above->names.erase(path.substr(slash + 1));
}

void Disks::clear() { root_->names.clear(); }

void Disks::copy(const std::string& from, const std::string& to) const {
  auto left = find(from);
  auto copy = all().make_directory(to, left && left->forgets);
  if (left) copy_below(*left, *copy);
}

void Disks::copy(const DiskFilePtr& from, const std::string& to, bool forgets) const {
  auto copy = all().make_directory(to, false);
  copy_below(*from, *copy);
  if (forgets) make_forgetful(*copy);
}

void Disks::copy_after_power_cut(const std::string& from, const std::string& to, Random& random) const {
  auto number = [&] {
    std::uint64_t value = 0;
    random.fill(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  };
  // Nothing unsynced survives, everything, or some of it.
  const std::uint64_t luck = std::array<std::uint64_t, 4>{0, 100, 50, 90}[number() % 4];
  auto made = all().make_directory(to, true);
  if (auto file = find(from)) {
    auto left = after_power_cut(*file, luck, number);
    made->names = std::move(left->names);
    made->safe_names = std::move(left->safe_names);
  }
}

std::vector<std::string> Disks::contents_below(const std::string& path) const {
  std::vector<std::string> contents;
  auto file = find(path);
  if (!file) return contents;
  if (!file->is_directory) return {file->bytes};
  for (const auto& [name, below] : file->names)
    for (auto& content : contents_below(path + "/" + name)) contents.push_back(std::move(content));
  return contents;
}

}  // namespace playfs::sim
