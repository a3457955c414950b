#include "content/inbox_marks.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "model/content_hash.h"

namespace playfs::content {
namespace {

/// A hundred bytes a line, and as many lines as marks before the file is replaced.
constexpr std::size_t kLongestJournal = 16 << 20;
/// Outdated lines before the file is replaced by a shorter one.
constexpr std::size_t kSpareLines = 1'000;
constexpr std::size_t kNameDigits = 32;
/// A writer holds the lock for a few syncs of a file of at most some megabytes.
constexpr std::chrono::seconds kLockPatience{5};
constexpr std::chrono::milliseconds kLockAgain{5};

/// "+VERSION ID": seen; "-VERSION ID": not, since then. The id is percent-encoded.
std::string line_of(const std::string& id, std::int64_t at, bool is_seen) {
  return (is_seen ? "+" : "-") + std::to_string(at) + " " + percent_encode(id) + "\n";
}

}  // namespace

std::string InboxMarks::file_name(std::string_view agent) {
  return ContentHash::of(agent).hex().substr(0, kNameDigits);
}

InboxMarks::InboxMarks(std::string directory, std::string_view agent)
    : directory_(std::move(directory)), path_(directory_ + "/" + file_name(agent) + ".seen") {}

void InboxMarks::take(std::string_view lines) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    const std::size_t space = line.find(' ');
    if (line.empty() || space == std::string_view::npos) continue;
    std::int64_t at = 0;
    const auto [rest, problem] = std::from_chars(line.data() + 1, line.data() + space, at);
    auto id = percent_decode(line.substr(space + 1));
    if (problem != std::errc() || rest != line.data() + space || !id) continue;
    if (line.front() == '-') seen_.erase(*id);
    else if (line.front() == '+') seen_.insert_or_assign(std::move(*id), at);
  }
}

Status InboxMarks::refresh() {
  for (;;) {
    PLAYFS_TRY(const bool is_all, read_more());
    if (is_all) return {};
  }
}

Result<bool> InboxMarks::read_more() {
  Read before;  // taken before the file is opened: a file of the same name that is opened later is the same or newer
  {
    MutexLock lock(mutex_);
    before = read_;
  }
  UniqueFd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat now {};
  const bool is_there = file || errno != ENOENT;
  if (is_there && (!file || ::fstat(file.get(), &now) != 0)) return fail(error_from_errno(errno, "read " + path_));
  const auto size = static_cast<std::uint64_t>(now.st_size);
  const bool goes_on = before.device == now.st_dev && before.inode == now.st_ino && before.bytes <= size;
  Read read = goes_on ? before : Read{now.st_dev, now.st_ino};
  std::string text;
  if (is_there && read.bytes < size) {
    PLAYFS_TRY(text, read_at(file.get(), read.bytes, std::min<std::uint64_t>(size - read.bytes, kLongestJournal)));
    text.resize(text.rfind('\n') + 1);  // npos + 1 is 0: no line is whole
  }
  read.bytes += text.size();
  read.lines += static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  MutexLock lock(mutex_);
  if (read_ != before) return false;  // another thread was faster
  if (!goes_on) seen_.clear();
  take(text);
  read_ = read;
  return text.empty() || read.bytes == size;
}

bool InboxMarks::is_seen(const std::string& id, WallTime at) const {
  MutexLock lock(mutex_);
  auto found = seen_.find(id);
  return found != seen_.end() && found->second >= at.nanoseconds;
}

Result<UniqueFd> lock_inboxes(const std::string& directory) {
  UniqueFd file(::open((directory + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail(error_from_errno(errno, "open " + directory + "/lock"));
  const auto end = std::chrono::steady_clock::now() + kLockPatience;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail(error_from_errno(errno, "lock " + directory));
    if (std::chrono::steady_clock::now() > end)
      return fail(ErrorCode::busy, "another process keeps the inbox locked", "try again");
    std::this_thread::sleep_for(kLockAgain);
  }
  return file;
}

Result<UniqueFd> InboxMarks::lock() {
  PLAYFS_CHECK(make_private_directory(directory_));
  PLAYFS_TRY(UniqueFd locked, lock_inboxes(directory_));
  PLAYFS_CHECK(refresh());
  return locked;
}

Status InboxMarks::append(const std::string& line) {
  Read read;
  {
    MutexLock lock(mutex_);
    read = read_;
  }
  const bool is_new = read.inode == 0;
  UniqueFd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail(error_from_errno(errno, "open " + path_));
  // Drops half a line that a crash has left.
  if (::ftruncate(file.get(), static_cast<off_t>(read.bytes)) != 0)
    return fail(error_from_errno(errno, "write " + path_));
  Status written = write_all_at(file.get(), line, read.bytes);
  if (written && ::fdatasync(file.get()) != 0) written = fail(error_from_errno(errno, "sync " + path_));
  if (written && is_new) written = sync_directory(directory_);
  // The caller reports a failure, so no mark may remain.
  if (!written && ::ftruncate(file.get(), static_cast<off_t>(read.bytes)) != 0)
    log_warning("half a mark is left in " + path_ + ": " + error_from_errno(errno, "truncate").message);
  return written;
}

Status InboxMarks::shorten() {
  std::string text;
  {
    MutexLock lock(mutex_);
    if (read_.lines <= 2 * seen_.size() + kSpareLines && seen_.size() <= kMost) return {};
    std::vector<std::pair<std::int64_t, std::string>> kept;
    for (const auto& [id, at] : seen_) kept.emplace_back(at, id);
    std::sort(kept.begin(), kept.end(), std::greater<>());
    // Some fewer than the most, or each further mark would replace the file.
    if (kept.size() > kMost) kept.resize(kMost - kSpareLines);
    for (const auto& [at, id] : kept) text += line_of(id, at, true);
  }
  PLAYFS_CHECK(write_file_atomically(path_, text));
  return refresh();
}

Result<bool> InboxMarks::mark(const std::string& id, WallTime at, bool is_seen) {
  PLAYFS_TRY(const UniqueFd locked, lock());
  if (this->is_seen(id, at) == is_seen) return false;
  PLAYFS_CHECK(append(line_of(id, at.nanoseconds, is_seen)));
  // The mark is on disk: what fails now only leaves the file longer, until the next one.
  Status shortened = refresh();
  if (shortened) shortened = shorten();
  if (!shortened) log_warning("the marks of the inbox are not shortened: " + shortened.error().message);
  return true;
}

}  // namespace playfs::content
