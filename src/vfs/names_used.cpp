#include "vfs/names_used.h"

#include <filesystem>
#include <string>
#include <utility>

#include "vfs/process_field.h"

namespace playfs::vfs {
namespace {

/// How many parent processes to look at. Enough for a shell in a makefile that a script runs.
constexpr int kMostGenerations = 16;

/// With a slash at its end.
std::string current_directory(pid_t thread) {
  std::error_code not_ours_to_see;
  const auto link = std::filesystem::read_symlink("/proc/" + std::to_string(thread) + "/cwd", not_ours_to_see);
  return link.string() + "/";
}

}  // namespace

void NamesUsed::note(pid_t thread, NamedRecord record) {
  const auto now = SteadyClock::now();
  MutexLock lock(mutex_);
  std::erase_if(threads_, [&](const auto& each) { return each.second.until < now; });
  threads_[thread] = {std::make_shared<const NamedRecord>(std::move(record)), now + kBetween};
  is_any_ = true;
}

NamedRecordPtr NamesUsed::of(pid_t thread) const {
  if (!is_any_) return nullptr;
  MutexLock lock(mutex_);
  auto found = threads_.find(thread);
  return found != threads_.end() && SteadyClock::now() <= found->second.until ? found->second.record : nullptr;
}

NamedRecordPtr NamesUsed::of_family(pid_t thread) const {
  if (auto record = of(thread)) return record;
  if (!is_any_) return nullptr;
  const std::string directory = current_directory(thread);
  for (int generation = 0; generation < kMostGenerations; ++generation) {
    auto record = of(process_field(thread, "Tgid").value_or(thread));
    if (record && directory.find("/" + record->id + "/") != std::string::npos) return record;
    const auto parent = process_field(thread, "PPid");
    // A process with another working directory has looked up the name for something else.
    if (!parent || *parent <= 1 || current_directory(*parent) != directory) break;
    thread = *parent;
  }
  return nullptr;
}

void NamesUsed::forget(pid_t thread) {
  if (!is_any_) return;
  MutexLock lock(mutex_);
  threads_.erase(thread);
  is_any_ = !threads_.empty();
}

}  // namespace playfs::vfs
