#include "stage/store/operations_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <tuple>

namespace playfs::stage {

namespace {

// Native byte order: a stage stays on its machine.
struct Header {
  std::uint64_t checksum = 0;  ///< XXH3 of everything after it, payload included
  std::uint64_t stage_id = 0;
  std::uint64_t number = 0;
  /// Low half: length of the payload. High half: distance back to the last synced record; 0 if unknown, as in records
  /// of older versions.
  std::uint64_t length_and_unsynced = 0;

  [[nodiscard]] std::uint64_t length() const { return length_and_unsynced & 0xffffffff; }
  [[nodiscard]] std::uint64_t synced() const {
    const std::uint64_t unsynced = length_and_unsynced >> 32;
    return unsynced == 0 || unsynced > number ? 0 : number - unsynced;
  }
};
static_assert(sizeof(Header) == 32);
constexpr std::uint64_t kMostPayload = 0xffffffff;
constexpr std::size_t kSector = 512;

Error for_good(Error error) {
  error.hint = "the disk failed: once it is fixed, unmount and mount again";
  return error;
}

std::uint64_t checksum_of(std::string_view record) {
  record.remove_prefix(sizeof(Header::checksum));
  return XXH3_64bits(record.data(), record.size());
}

/// The record at the start of `bytes`, and its size.
struct FirstRecord {
  LogRecord record;
  std::size_t size = 0;
};
std::optional<FirstRecord> first_record(std::string_view bytes, std::optional<std::uint64_t> stage_id) {
  Header header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if ((stage_id && header.stage_id != *stage_id) || header.length() > bytes.size() - sizeof header) return std::nullopt;
  std::string_view record = bytes.substr(0, sizeof header + header.length());
  if (header.checksum != checksum_of(record)) return std::nullopt;
  return FirstRecord{{header.number, header.synced(), std::string(record.substr(sizeof header))}, record.size()};
}

/// Whether `bytes` start with what once was record `number`: its header is there, except perhaps for one field, and it
/// contains no run of zeros like a sector that was never written.
bool was_record(std::string_view bytes, std::uint64_t stage_id, std::uint64_t number) {
  Header header;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::size_t size = std::min<std::size_t>(bytes.size(), sizeof header + header.length());
  if (header.number != number) {
    if (header.stage_id != stage_id || size < sizeof header + header.length()) return false;
    std::string whole(bytes.substr(0, size));
    std::memcpy(whole.data() + offsetof(Header, number), &number, sizeof number);
    return header.checksum == checksum_of(whole);
  }
  std::size_t empty = 0;
  for (char byte : bytes.substr(0, size)) {
    empty = byte == 0 ? empty + 1 : 0;
    if (empty >= kSector) return false;
  }
  return true;
}

/// Whether record `number` was written in full at `at`, though its checksum is wrong now. A power loss would leave a
/// sector, or the record's part of one, unwritten.
bool was_written_in_full(std::string_view file, std::size_t at, std::uint64_t stage_id, std::uint64_t number) {
  if (!was_record(file.substr(at), stage_id, number)) return false;
  Header header;
  std::memcpy(&header, file.data() + at, sizeof header);
  const std::size_t end = at + sizeof header + header.length();
  if (end > file.size()) return false;
  for (std::size_t begin = at; begin < end; begin = (begin / kSector + 1) * kSector) {
    const std::string_view part = file.substr(begin, std::min(end, (begin / kSector + 1) * kSector) - begin);
    if (part.find_first_not_of('\0') == std::string_view::npos) return false;
  }
  return true;
}

Result<std::uint64_t> length_of(int fd) {
  struct stat attributes {};
  if (fstat(fd, &attributes) != 0) return fail(error_from_errno(errno, "stat the operations log"));
  return static_cast<std::uint64_t>(attributes.st_size);
}

}  // namespace

Result<std::unique_ptr<OperationsLog>> OperationsLog::open(const std::string& directory, std::uint64_t stage_id) {
  std::unique_ptr<OperationsLog> log(new OperationsLog(directory, stage_id));
  MutexLock lock(log->mutex_);
  for (std::size_t i = 0; i < kFiles.size(); ++i) {
    const std::string path = directory + kFiles[i];
    File& file = log->files_[i];
    file.fd = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.fd) return fail(error_from_errno(errno, "open " + path));
    PLAYFS_TRY(file.size, length_of(file.fd.get()));
    log->size_ += file.size;
  }
  return log;
}

LogContent OperationsLog::parse(std::string_view bytes, std::optional<std::uint64_t> stage_id) {
  LogContent content;
  while (auto next = first_record(bytes, stage_id)) {
    if (!content.records.empty() && next->record.number != content.records.back().number + 1) break;
    content.records.push_back(std::move(next->record));
    bytes.remove_prefix(next->size);
  }
  content.torn = bytes.size();
  return content;
}

std::vector<LogRecord> OperationsLog::salvage(std::string_view bytes, std::optional<std::uint64_t> stage_id) {
  std::vector<LogRecord> records;
  // Bytes that merely look like a header cost a checksum, perhaps at every offset; this bounds the work.
  std::uint64_t left = 64 * std::uint64_t{bytes.size()};
  Header header;
  while (bytes.size() >= sizeof header && left > 0) {
    std::memcpy(&header, bytes.data(), sizeof header);
    bool is_likely = (!stage_id || header.stage_id == *stage_id) && header.length() <= bytes.size() - sizeof header;
    auto next = is_likely ? first_record(bytes, stage_id) : std::nullopt;
    if (is_likely) left -= std::min(left, sizeof header + header.length());
    if (next) records.push_back(std::move(next->record));
    bytes.remove_prefix(next ? next->size : 1);
  }
  return records;
}

Result<LogContent> OperationsLog::read(std::uint64_t after) const {
  std::vector<std::string> files;
  std::vector<LogContent> parts;
  LogContent found;
  MutexLock lock(mutex_);
  for (const File& file : files_) {
    PLAYFS_TRY(std::string bytes, read_at(file.fd.get(), 0, file.size));
    parts.push_back(parse(bytes, stage_id_));
    found.torn += parts.back().torn;
    files.push_back(std::move(bytes));
  }
  const std::array<std::uint64_t, 2> torn = {parts[0].torn, parts[1].torn};
  auto first_of = [](const LogContent& part) { return part.records.empty() ? 0 : part.records.front().number; };
  if (first_of(parts[1]) < first_of(parts[0])) std::swap(parts[0], parts[1]);
  for (LogContent& part : parts) {
    for (LogRecord& record : part.records) {
      if (record.number <= after) continue;
      if (record.number == after + 1 + found.records.size()) found.records.push_back(std::move(record));
      else found.torn += sizeof(Header) + record.payload.size();
    }
  }
  if (found.torn == 0) return found;
  const std::uint64_t missing = after + 1 + found.records.size();
  bool has_later = false, was_there = false, was_in_full = false;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::size_t end = files[i].size() - torn[i];
    was_there = was_there || was_record(std::string_view(files[i]).substr(end), stage_id_, missing);
    was_in_full = was_in_full || was_written_in_full(files[i], end, stage_id_, missing);
    for (const LogRecord& record : salvage(files[i], stage_id_)) {
      has_later = has_later || record.number > missing;
      found.is_damaged = found.is_damaged || (record.number > missing && record.synced >= missing);
    }
  }
  found.is_damaged = found.is_damaged || (has_later && was_there);
  found.has_changed_last = !has_later && was_in_full;
  return found;
}

Status OperationsLog::start(std::uint64_t next) {
  MutexLock lock(mutex_);
  for (File& file : files_) {
    if (file.size > 0 && ftruncate(file.fd.get(), 0) != 0)
      return fail(error_from_errno(errno, "empty the operations log"));
    file.size = 0;
  }
  size_ = 0;
  next_ = next;
  synced_ = next - 1;
  return {};
}

Status OperationsLog::append(std::string_view payload) {
  MutexLock lock(mutex_);
  File& file = files_[active_];
  if (payload.size() > kMostPayload) return fail(ErrorCode::file_too_big, "the operation is too large");
  Header header{0, stage_id_, next_, payload.size() | std::min(next_ - synced_, kMostPayload) << 32};
  record_.assign(reinterpret_cast<const char*>(&header), sizeof header);
  record_ += payload;
  header.checksum = checksum_of(record_);
  std::memcpy(record_.data(), &header.checksum, sizeof header.checksum);
  if (auto written = write_all_at(file.fd.get(), record_, file.size); !written) {
    // The next record would overwrite the remains; truncating frees their space.
    std::ignore = ftruncate(file.fd.get(), static_cast<off_t>(file.size));
    return fail(written.error().while_doing("log the operation"));
  }
  file.size += record_.size();
  size_ += record_.size();
  file.appended = next_++;
  constexpr std::size_t kept = 1 << 16;
  if (record_.capacity() > kept) record_ = {};
  return {};
}

Status OperationsLog::sync() {
  MutexLock only(syncing_);
  std::array<std::uint64_t, 2> seen{};
  std::array<int, 2> fds = {-1, -1};
  {
    MutexLock lock(mutex_);
    if (sync_error_) return fail(*sync_error_);
    for (std::size_t i = 0; i < files_.size(); ++i) {
      seen[i] = files_[i].appended;
      if (files_[i].synced < seen[i]) fds[i] = files_[i].fd.get();
    }
  }
  // Also if the files existed already: their creator may have died before syncing.
  if (!names_synced_ && (fds[0] >= 0 || fds[1] >= 0)) {
    if (auto synced = sync_directory(directory_); !synced) {
      MutexLock lock(mutex_);
      return fail(sync_error_.emplace(for_good(synced.error())));
    }
    names_synced_ = true;
  }
  // Both: a record is read only if all before it are there. If one is checkpointed meanwhile, its sync is merely
  // wasted.
  for (std::size_t i = 0; i < fds.size(); ++i) {
    if (fds[i] < 0) continue;
    int error = fdatasync(fds[i]) == 0 ? 0 : errno;
    MutexLock lock(mutex_);
    if (error != 0) {
      return fail(sync_error_.emplace(for_good(error_from_errno(error, "sync the operations log"))));
    }
    files_[i].synced = std::max(files_[i].synced, seen[i]);
  }
  MutexLock lock(mutex_);
  synced_ = std::max({synced_, seen[0], seen[1]});
  return {};
}

Status OperationsLog::check_disk() const {
  MutexLock lock(mutex_);
  return sync_error_ ? Status(fail(*sync_error_)) : Status();
}

bool OperationsLog::is_synced() {
  MutexLock lock(mutex_);
  return files_[0].synced >= files_[0].appended && files_[1].synced >= files_[1].appended;
}

Result<std::vector<LogRecord>> OperationsLog::begin_checkpoint() {
  int fd = -1;
  std::uint64_t size = 0, last = 0;
  {
    MutexLock lock(mutex_);
    if (previous().size == 0) active_ = 1 - active_;
    fd = previous().fd.get();
    size = previous().size;
    last = previous().appended;
  }
  if (size == 0) return std::vector<LogRecord>();
  PLAYFS_TRY(std::string bytes, read_at(fd, 0, size));
  LogContent content = parse(bytes, stage_id_);
  if (content.torn > 0 || content.records.empty() || content.records.back().number != last)
    return fail(ErrorCode::corrupt, "the operations log cannot be read back");
  return std::move(content.records);
}

Status OperationsLog::end_checkpoint() {
  MutexLock lock(mutex_);
  File& file = previous();
  if (ftruncate(file.fd.get(), 0) != 0) return fail(error_from_errno(errno, "empty the operations log"));
  size_ -= file.size;
  file.size = 0;
  file.synced = file.appended;
  return {};
}

}  // namespace playfs::stage
