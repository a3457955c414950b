#include "app/kept_key.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "model/content_hash.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

constexpr const char* kDirectory = "/unanswered";
constexpr std::size_t kHashDigits = 32;
/// Suffix of a file that is not locked yet.
constexpr std::string_view kUnlocked = ".new";

struct KeptFile {
  std::string name;
  std::int64_t since = 0;  ///< nanoseconds
};

/// The part of a file's name that identifies what is sent.
std::string beginning_for(const runtime::ClientStack& stack, const std::string& collection, const JsonObject& body) {
  std::string all;
  for (const std::string& part : {stack.client().caller(), collection, wire::to_text(body)})
    all += std::to_string(part.size()) + ":" + part;
  return ContentHash::of(all).hex().substr(0, kHashDigits) + ".";
}

/// The files that still count, oldest first; removes expired and surplus ones.
std::vector<KeptFile> files_in(const std::string& directory, const Clock& clock) {
  std::vector<KeptFile> files;
  std::error_code problem;
  for (std::filesystem::directory_iterator entry(directory, problem), last; !problem && entry != last;
       entry.increment(problem)) {
    struct stat info {};
    if (lstat(entry->path().c_str(), &info) != 0) continue;
    const std::int64_t since = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
    if (clock.wall().nanoseconds - since > std::chrono::nanoseconds(KeptKey::kLongest).count())
      unlink(entry->path().c_str());
    else files.push_back({entry->path().filename().string(), since});
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.since < b.since; });
  return files;
}

/// Returns nothing if another process is sending it, or has just had its answer.
UniqueFd locked_file(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 || fstat(file.get(), &info) != 0 || info.st_nlink == 0)
    return {};
  return file;
}

bool is_one_of(const KeptFile& file, const std::string& beginning) {
  return file.name.starts_with(beginning) && !file.name.ends_with(kUnlocked);
}

}  // namespace

KeptKey KeptKey::given(std::string key) {
  KeptKey given;
  given.key_ = std::move(key);
  return given;
}

bool KeptKey::is_awaited(runtime::ClientStack& stack, const std::string& collection, const JsonObject& body) {
  auto state = stack.state_directory();
  if (!state) return false;
  const auto files = files_in(*state + kDirectory, stack.clock());
  return std::any_of(
      files.begin(), files.end(),
      [beginning = beginning_for(stack, collection, body)](const auto& each) { return is_one_of(each, beginning); });
}

KeptKey KeptKey::of(runtime::ClientStack& stack, const std::string& collection, const JsonObject& body) {
  KeptKey kept = given(stack.random().uuid());
  auto state = stack.state_directory();
  if (!state) return kept;
  const std::string directory = *state + kDirectory;
  if (!make_private_directory(directory)) return kept;
  const std::string beginning = beginning_for(stack, collection, body);
  const std::vector<KeptFile> files = files_in(directory, stack.clock());
  for (const KeptFile& file : files) {
    if (!is_one_of(file, beginning)) continue;
    std::string path = directory + "/" + file.name;
    if (kept.lock_ = locked_file(path); !kept.lock_) continue;
    kept.key_ = file.name.substr(beginning.size());
    kept.path_ = std::move(path);
    return kept;
  }
  for (std::size_t spare = files.size(), i = 0; spare >= kMost; --spare, ++i)
    unlink((directory + "/" + files[i].name).c_str());
  // Locked before it has its name, or another process might take it for one whose answer was lost.
  std::string path = directory + "/" + beginning + kept.key_;
  const std::string unlocked = path + std::string(kUnlocked);
  UniqueFd file(::open(unlocked.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (!file) return kept;
  if (::flock(file.get(), LOCK_EX) != 0 || ::rename(unlocked.c_str(), path.c_str()) != 0 ||
      !sync_directory(directory)) {
    unlink(unlocked.c_str());
    return kept;
  }
  kept.lock_ = std::move(file);
  kept.path_ = std::move(path);
  return kept;
}

void KeptKey::forget() {
  if (!path_.empty()) unlink(path_.c_str());
  path_.clear();
  lock_ = {};
}

}  // namespace playfs::app
