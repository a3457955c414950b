#include "app/kept_key.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/shell.h"
#include "model/content_hash.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

constexpr const char* kDirectory = "/unanswered";
constexpr std::size_t kHashDigits = 32, kCallerDigits = 16;
/// Suffix of a file that is not locked yet.
constexpr std::string_view kUnlocked = ".new";

struct KeptFile {
  std::string name;
  std::int64_t since = 0;  ///< nanoseconds
};

std::string hash_of(std::initializer_list<std::string> parts, std::size_t digits) {
  std::string all;
  for (const std::string& part : parts) all += std::to_string(part.size()) + ":" + part;
  return ContentHash::of(all).hex().substr(0, digits) + ".";
}

/// The part of a file's name that identifies who sends it.
std::string mark_of(const std::string& caller) { return hash_of({"caller", caller}, kCallerDigits); }

/// Returns nothing if another process is sending it, or has just had its answer.
UniqueFd locked_file(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 || fstat(file.get(), &info) != 0 || info.st_nlink == 0)
    return {};
  return file;
}

/// The files that still count, oldest first; removes expired ones.
std::vector<KeptFile> files_in(const std::string& directory, const Clock& clock) {
  std::vector<KeptFile> files;
  std::error_code problem;
  for (std::filesystem::directory_iterator entry(directory, problem), last; !problem && entry != last;
       entry.increment(problem)) {
    struct stat info {};
    if (lstat(entry->path().c_str(), &info) != 0) continue;
    const std::int64_t since = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
    const bool is_expired = clock.wall().nanoseconds - since > std::chrono::nanoseconds(KeptKey::kLongest).count();
    if (is_expired && locked_file(entry->path())) unlink(entry->path().c_str());
    else files.push_back({entry->path().filename().string(), since});
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.since < b.since; });
  return files;
}

/// Those of them that were sent as `caller`.
std::vector<KeptFile> sent_as(const std::vector<KeptFile>& files, const std::string& beginning,
                              const std::string& caller) {
  std::vector<KeptFile> sent;
  for (const KeptFile& file : files)
    if (file.name.starts_with(beginning + mark_of(caller)) && !file.name.ends_with(kUnlocked)) sent.push_back(file);
  return sent;
}

/// Whoever sends it now might make a second record.
Error sent_by_another(const std::string& path) {
  return {
      ErrorCode::unauthorized, "the same was sent as another account or key, had no answer and may have arrived",
      "sign in as before (playfs login), then run the same command again: it is posted once; or, to send it as new: "
      "rm " +
          shell_word(path)};
}

Error too_many(const std::string& directory) {
  return {ErrorCode::busy,
          "of " + std::to_string(KeptKey::kMost) +
              " posts of the last day it is unknown whether they arrived: nothing "
              "was sent",
          "run those commands again; or, to forget them: rm -r " + shell_word(directory)};
}

/// Creates the file of a new key. Returns nothing if the disk takes none.
UniqueFd created_file(const std::string& directory, const std::string& path) {
  // Locked before it has its name, or another process might take it for one whose answer was lost.
  const std::string unlocked = path + std::string(kUnlocked);
  UniqueFd file(::open(unlocked.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (!file) return {};
  if (::flock(file.get(), LOCK_EX) == 0 && ::rename(unlocked.c_str(), path.c_str()) == 0 && sync_directory(directory))
    return file;
  unlink(unlocked.c_str());
  return {};
}

}  // namespace

bool KeptKey::is_awaited(runtime::ClientStack& stack, const std::string& collection, const JsonObject& body) {
  auto state = stack.state_directory();
  if (!state) return false;
  const auto files = files_in(*state + kDirectory, stack.clock());
  const std::string beginning = hash_of({collection, wire::to_text(body)}, kHashDigits);
  return !sent_as(files, beginning, stack.client().caller()).empty() || !sent_as(files, beginning, "").empty();
}

Result<KeptKey> KeptKey::of(runtime::ClientStack& stack, const std::string& collection, const JsonObject& body,
                            std::string fixed) {
  KeptKey kept;
  kept.key_ = fixed.empty() ? stack.random().uuid() : fixed;
  auto state = stack.state_directory();
  if (!state) return kept;
  const std::string directory = *state + kDirectory;
  if (!make_private_directory(directory)) return kept;
  const std::string beginning = hash_of({collection, fixed.empty() ? wire::to_text(body) : fixed}, kHashDigits);
  const std::vector<KeptFile> files = files_in(directory, stack.clock());
  const std::string caller = stack.client().caller();
  for (const std::string& each : {caller, std::string()}) {
    for (const KeptFile& file : sent_as(files, beginning, each)) {
      std::string path = directory + "/" + file.name;
      UniqueFd lock = locked_file(path);
      // Another run holds this key: does not wait for it, and takes another key. A fixed key may be sent by both.
      if (!lock && fixed.empty()) continue;
      kept.key_ = file.name.substr(beginning.size() + mark_of(each).size());
      if (each != caller) kept.as_ = each;
      kept.is_repeated_ = true;
      if (lock) kept.path_ = std::move(path);
      kept.lock_ = std::move(lock);
      return kept;
    }
  }
  for (const KeptFile& file : files) {
    const std::string path = directory + "/" + file.name;
    const bool is_own = file.name.starts_with(beginning + mark_of(caller)) || file.name.ends_with(kUnlocked);
    if (file.name.starts_with(beginning) && !is_own && locked_file(path)) return fail(sent_by_another(path));
  }
  if (files.size() >= kMost) return fail(too_many(directory));
  std::string path = directory + "/" + beginning + mark_of(caller) + kept.key_;
  kept.lock_ = created_file(directory, path);
  if (kept.lock_) kept.path_ = std::move(path);
  return kept;
}

void KeptKey::forget() {
  if (!path_.empty()) unlink(path_.c_str());
  path_.clear();
  lock_ = {};
}

}  // namespace playfs::app
