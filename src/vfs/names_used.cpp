#include "vfs/names_used.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "vfs/process_field.h"

namespace playfs::vfs {
namespace {

/// As from a shell in a makefile that a script runs.
constexpr int kMostGenerations = 16;

/// With a slash at its end.
std::string current_directory(pid_t thread) {
  std::error_code not_ours_to_see;
  const auto link = std::filesystem::read_symlink("/proc/" + std::to_string(thread) + "/cwd", not_ours_to_see);
  return link.string() + "/";
}

/// Whether it is the directory of that record, or one in it.
bool is_in(const std::string& directory, const std::string& id) {
  return directory.find("/" + id + "/") != std::string::npos;
}

pid_t process_of(pid_t thread) { return process_field(thread, "Tgid").value_or(thread); }

}  // namespace

void NamesUsed::remember(pid_t thread, NamedRecordPtr record, bool is_arrived) {
  const auto now = SteadyClock::now();
  std::erase_if(threads_, [&](const auto& each) { return each.second.until < now; });
  threads_[thread] = {std::move(record), is_arrived, false, 0, now + kBetween};
  is_any_ = true;
}

void NamesUsed::note(pid_t thread, NamedRecord record) {
  MutexLock lock(mutex_);
  remember(thread, std::make_shared<const NamedRecord>(std::move(record)), false);
}

void NamesUsed::begins(pid_t thread) {
  if (!is_any_) return;
  MutexLock lock(mutex_);
  auto found = threads_.find(thread);
  if (found != threads_.end() && !found->second.is_arrived) threads_.erase(found);
}

void NamesUsed::arrived(pid_t thread, const std::string& collection, const std::string& id) {
  if (!is_any_) return;
  NamedRecordPtr record;
  bool is_of_use = false;
  {
    MutexLock lock(mutex_);
    const auto found = threads_.find(thread);
    const bool is_known = found != threads_.end() && SteadyClock::now() <= found->second.until &&
                          found->second.record->collection == collection && found->second.record->id == id;
    if (is_known && !found->second.is_arrived && !found->second.is_inside) record = found->second.record;
    else record = std::make_shared<const NamedRecord>(NamedRecord{collection, id, {}});
    remember(thread, record, true);
    is_of_use = !record->name.empty() ||
                std::any_of(ways_.begin(), ways_.end(), [&](const auto& way) { return way.first.second == id; });
  }
  if (!is_of_use) return;
  const pid_t process = process_of(thread);
  const std::uint64_t started = process_start(process);
  const bool was_there = is_in(current_directory(process), id);
  MutexLock lock(mutex_);
  came({process, id}, started, was_there, record);
  if (const auto found = threads_.find(thread); found != threads_.end()) found->second.process = process;
}

void NamesUsed::came(const InDirectory& where, std::uint64_t started, bool was_there, const NamedRecordPtr& record) {
  if (ways_.size() >= most_ways_) forget_the_dead();
  Way& way = ways_[where];
  if (way.started != started) way = {started, {}, {}, false};
  if (!was_there) {
    way = {started, record, {}, false};
  } else {
    way.is_change = way.latest && way.latest->name == record->name;
    way.latest = record;
  }
}

void NamesUsed::entered(pid_t thread, const std::string& id) {
  if (!is_any_) return;
  MutexLock lock(mutex_);
  const auto found = threads_.find(thread);
  if (found == threads_.end() || !found->second.is_arrived || found->second.record->id != id) return;
  if (std::exchange(found->second.is_inside, true)) {
    found->second.is_arrived = false;
    return;
  }
  const auto way = ways_.find({found->second.process, id});
  if (way == ways_.end() || !way->second.latest) return;
  if (way->second.is_change) way->second.record = way->second.latest;
  way->second.latest = nullptr;
}

NamedRecordPtr NamesUsed::of(pid_t thread, bool is_lookup) const {
  if (!is_any_) return nullptr;
  MutexLock lock(mutex_);
  const auto found = threads_.find(thread);
  if (found == threads_.end() || SteadyClock::now() > found->second.until) return nullptr;
  return is_lookup && found->second.is_inside && !found->second.is_arrived ? nullptr : found->second.record;
}

NamedRecordPtr NamesUsed::way_of(pid_t process, const std::string& directory, bool is_for_child) {
  const std::uint64_t started = process_start(process);
  MutexLock lock(mutex_);
  for (auto way = ways_.lower_bound({process, {}}); way != ways_.end() && way->first.first == process; ++way) {
    if (way->second.started != started || !is_in(directory, way->first.second)) continue;
    // A path through the directory has ended by now, so that was a change to it.
    if (way->second.latest && (is_for_child || way->second.is_change))
      way->second.record = std::exchange(way->second.latest, nullptr);
    return way->second.record;
  }
  return nullptr;
}

NamedRecordPtr NamesUsed::of_family(pid_t thread) {
  if (!is_any_) return nullptr;
  const std::string directory = current_directory(thread);
  for (int generation = 0; generation < kMostGenerations; ++generation) {
    const pid_t process = process_of(thread);
    if (auto record = way_of(process, directory, generation > 0)) return record;
    // A link in a collection that has no such directories.
    if (auto record = of(process); record && is_in(directory, record->id)) return record;
    const auto parent = process_field(thread, "PPid");
    // Whoever is elsewhere has looked up the name for something else.
    if (!parent || *parent <= 1 || current_directory(*parent) != directory) break;
    thread = *parent;
  }
  return nullptr;
}

void NamesUsed::forget(pid_t thread) {
  if (!is_any_) return;
  MutexLock lock(mutex_);
  threads_.erase(thread);
  is_any_ = !threads_.empty() || !ways_.empty();
}

void NamesUsed::forget_the_dead() {
  std::erase_if(ways_, [](const auto& way) { return process_start(way.first.first) != way.second.started; });
  most_ways_ = std::max(kSpare, 2 * ways_.size());
}

}  // namespace playfs::vfs
