#include "vfs/control/maildir_marks.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <thread>
#include <utility>

#include "base/log.h"

namespace playfs::vfs {
namespace {

/// A journal is replaced if it has more lines than twice the current ones plus this.
constexpr std::size_t kSpareLines = 1'000;
constexpr std::size_t kReadAtOnce = 1 << 20;
constexpr std::uint64_t kLongestJournal = 1 << 30;
constexpr int kMostTries = 500;
constexpr std::chrono::milliseconds kBetweenTries{4};

/// LETTER UPDATED PLACE[INFO]
std::string line_of(const std::string& letter, const MaildirMark& mark) {
  return letter + " " + std::to_string(mark.updated) + " " + static_cast<char>(mark.place) + mark.info + "\n";
}

std::optional<std::pair<std::string, MaildirMark>> parsed(std::string_view line) {
  const auto first = line.find(' ');
  const auto second = first == line.npos ? first : line.find(' ', first + 1);
  if (first == 0 || second == line.npos || second + 1 >= line.size()) return std::nullopt;
  MaildirMark mark;
  const char* const end = line.data() + second;
  const auto [stop, error] = std::from_chars(line.data() + first + 1, end, mark.updated);
  const char place = line[second + 1];
  if (error != std::errc() || stop != end || (place != 'n' && place != 'c' && place != 'x')) return std::nullopt;
  mark.place = static_cast<MaildirMark::Place>(place);
  mark.info = line.substr(second + 2);
  return std::pair(std::string(line.substr(0, first)), std::move(mark));
}

/// Taken to read or change the journal. The lock is a file of its own, since the journal is replaced.
Result<UniqueFd> locked(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail(error_from_errno(errno, "open " + path));
  for (int tries = 0; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail(error_from_errno(errno, "lock " + path));
    // Its holder has a few lines to write, or is stopped.
    if (tries == kMostTries)
      return fail(ErrorCode::busy, "another mount keeps the marks of maildir/ locked", "try again");
    std::this_thread::sleep_for(kBetweenTries);
  }
  return file;
}

}  // namespace

std::optional<MaildirMark> MaildirMarks::of(const std::string& letter) const {
  MutexLock lock(mutex_);
  auto found = marks_.find(letter);
  return found == marks_.end() ? std::nullopt : std::optional(found->second);
}

std::uint64_t MaildirMarks::version() const {
  MutexLock lock(mutex_);
  return version_;
}

bool MaildirMarks::is_read() const {
  MutexLock lock(mutex_);
  return is_read_;
}

MaildirMarks::Changes MaildirMarks::take_changes() {
  MutexLock lock(mutex_);
  return std::exchange(changes_, {});
}

Status MaildirMarks::catch_up() {
  MutexLock io(io_);
  if (::access(directory_.c_str(), F_OK) != 0 && errno == ENOENT) {
    MutexLock lock(mutex_);
    is_read_ = true;
    return {};
  }
  PLAYFS_TRY(UniqueFd held, locked(lock_path_));
  return read_on();
}

Status MaildirMarks::read_on() {
  struct stat now {};
  const bool exists = ::stat(path_.c_str(), &now) == 0;
  if (!exists && errno != ENOENT) return fail(error_from_errno(errno, "read " + path_));
  struct stat known {};
  if (journal_ && (!exists || ::fstat(journal_.get(), &known) != 0 || known.st_ino != now.st_ino)) journal_ = {};
  if (!journal_ && exists) {
    journal_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
    if (!journal_) return fail(error_from_errno(errno, "read " + path_));
    read_ = lines_ = 0;
  }
  std::string rest;
  for (std::uint64_t at = read_; journal_ && at < kLongestJournal;) {
    PLAYFS_TRY(std::string piece, read_at(journal_.get(), at, kReadAtOnce));
    if (piece.empty()) break;
    at += piece.size();
    rest += piece;
    std::size_t begin = 0;
    MutexLock lock(mutex_);
    for (std::size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n', begin = end + 1)) {
      ++lines_;
      auto line = parsed(std::string_view(rest).substr(begin, end - begin));
      if (!line) continue;
      auto [mark, is_first] = marks_.try_emplace(line->first);
      if (!is_first && mark->second == line->second) continue;
      changes_.emplace(line->first, is_first ? std::nullopt : std::optional(mark->second));
      ++version_;
      mark->second = std::move(line->second);
    }
    read_ += begin;
    rest.erase(0, begin);
  }
  MutexLock lock(mutex_);
  // The first reading has nothing to compare with.
  if (!std::exchange(is_read_, true)) changes_.clear();
  return {};
}

Status MaildirMarks::mark(const std::string& letter, const std::optional<MaildirMark>& from, const MaildirMark& to) {
  MutexLock io(io_);
  PLAYFS_CHECK(make_private_directory(directory_));
  PLAYFS_TRY(UniqueFd held, locked(lock_path_));
  PLAYFS_CHECK(read_on());
  if (of(letter) != from)
    return fail(ErrorCode::not_found, "another mount has moved or removed this mail", "list the directory again");
  PLAYFS_CHECK(append(line_of(letter, to)));
  std::size_t count = 0;
  {
    MutexLock lock(mutex_);
    marks_.insert_or_assign(letter, to);
    ++version_;
    count = marks_.size();
  }
  if (lines_ > 2 * count + kSpareLines) compact();
  return {};
}

Status MaildirMarks::append(const std::string& line) {
  if (!journal_) {
    journal_ = UniqueFd(::open(path_.c_str(), O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!journal_) return fail(error_from_errno(errno, "write " + path_));
    PLAYFS_CHECK(sync_directory(directory_));
    read_ = lines_ = 0;
  }
  // A line that another writer left unfinished would swallow this one.
  if (::ftruncate(journal_.get(), static_cast<off_t>(read_)) != 0)
    return fail(error_from_errno(errno, "write " + path_));
  PLAYFS_CHECK(write_all(journal_.get(), line));
  read_ += line.size();
  ++lines_;
  return {};
}

void MaildirMarks::compact() {
  std::string text;
  std::size_t count = 0;
  {
    MutexLock lock(mutex_);
    for (const auto& [letter, mark] : marks_) text += line_of(letter, mark);
    count = marks_.size();
  }
  if (Status written = write_file_atomically(path_, text); !written)
    return log_warning("the marks of maildir/ are not compacted: " + written.error().message);
  journal_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  read_ = text.size();
  lines_ = count;
}

Status MaildirMarks::sync() {
  MutexLock io(io_);
  if (journal_ && ::fdatasync(journal_.get()) != 0) return fail(error_from_errno(errno, "sync " + path_));
  return {};
}

}  // namespace playfs::vfs
