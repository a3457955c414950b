#include "fuse/request.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <vector>

#include "fuse/errno_table.h"

namespace playfs::fuse {

namespace {
timespec timespec_of(WallTime time) {
  constexpr std::int64_t second = 1'000'000'000;
  std::int64_t seconds = time.nanoseconds / second, rest = time.nanoseconds % second;
  if (rest < 0) {
    rest += second;
    --seconds;
  }
  return {.tv_sec = seconds, .tv_nsec = rest};
}
}  // namespace

std::uint64_t InFlight::add(CancelSource source) {
  bool cancel_at_once = false;
  std::uint64_t id = 0;
  {
    MutexLock lock(mutex_);
    id = next_id_++;
    known_.try_emplace(id, Known{source, {}});
    cancel_at_once = cancelled_;
  }
  if (cancel_at_once) source.cancel();
  return id;
}

void InFlight::remove(std::uint64_t id) {
  MutexLock lock(mutex_);
  known_.erase(id);
  // Under the lock: a waiter may destroy this object as soon as it has the lock.
  if (known_.empty()) changed_.notify_all();
}

void InFlight::interrupt(std::uint64_t id) {
  std::optional<CancelSource> source;
  {
    MutexLock lock(mutex_);
    if (auto found = known_.find(id); found != known_.end()) source = found->second.source;
  }
  if (source) source->cancel();
}

void InFlight::interrupt_without(pid_t caller, std::uint64_t id) {
  {
    MutexLock lock(mutex_);
    if (!known_.contains(id)) return;
  }
  UniqueFd watched = callers_.watch(id, caller);
  MutexLock lock(mutex_);
  if (auto found = known_.find(id); found != known_.end()) found->second.caller = std::move(watched);
}

void InFlight::cancel_all() {
  std::vector<CancelSource> sources;
  {
    MutexLock lock(mutex_);
    cancelled_ = true;
    for (auto& [id, known] : known_) sources.push_back(known.source);
  }
  for (auto& source : sources) source.cancel();
}

bool InFlight::wait_until_empty(std::chrono::milliseconds limit) {
  auto end = std::chrono::steady_clock::now() + limit;
  MutexLock lock(mutex_);
  while (!known_.empty()) {
    auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    changed_.wait_for(mutex_, left);
  }
  return true;
}

Request::Request(fuse_req_t handle, InFlight& in_flight) : handle_(handle), in_flight_(&in_flight) {
  CancelSource source;
  const fuse_ctx* context = fuse_req_ctx(handle);
  caller_ = {context->uid, context->gid, context->pid, source.token()};
  id_ = in_flight.add(std::move(source));
  // By number, not by address: an INTERRUPT may be delivered while another thread answers and destroys this.
  fuse_req_interrupt_func(
      handle,
      [](fuse_req_t req, void* number) {
        InFlight& known = *static_cast<InFlight*>(fuse_req_userdata(req));
        known.interrupt(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(number)));
      },
      reinterpret_cast<void*>(static_cast<std::uintptr_t>(id_)));
}

Request::Request(Request&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      in_flight_(other.in_flight_),
      id_(other.id_),
      caller_(std::move(other.caller_)) {}

Request::~Request() {
  if (handle_) error_number(EIO);
}

fuse_req_t Request::take() { return std::exchange(handle_, nullptr); }

int Request::number_of(const Error& error) { return errno_of(error.code); }

void Request::error_number(int errnum) {
  fuse_reply_err(take(), errnum);
  in_flight_->remove(id_);
}

bool Request::entry(const vfs::Entry& entry) {
  fuse_entry_param param = entry_param(entry);
  bool accepted = fuse_reply_entry(take(), &param) == 0;
  in_flight_->remove(id_);
  return accepted;
}

void Request::attributes(const vfs::AttributesReply& reply) {
  struct stat attributes = stat_of(reply.attributes);
  fuse_reply_attr(take(), &attributes, reply.timeout);
  in_flight_->remove(id_);
}

void Request::link_target(const std::string& target) {
  fuse_reply_readlink(take(), target.c_str());
  in_flight_->remove(id_);
}

bool Request::data(std::string_view bytes) {
  bool accepted = fuse_reply_buf(take(), bytes.data(), bytes.size()) == 0;
  in_flight_->remove(id_);
  return accepted;
}

void Request::written(std::size_t count) {
  fuse_reply_write(take(), count);
  in_flight_->remove(id_);
}

void Request::xattr_size(std::size_t size) {
  fuse_reply_xattr(take(), size);
  in_flight_->remove(id_);
}

void Request::offset(std::uint64_t value) {
  fuse_reply_lseek(take(), static_cast<off_t>(value));
  in_flight_->remove(id_);
}

void Request::file_system_status(const vfs::FileSystemStatus& status) {
  struct statvfs answer {};
  answer.f_bsize = answer.f_frsize = status.block_size;
  answer.f_blocks = status.blocks;
  answer.f_bfree = status.blocks_free;
  answer.f_bavail = status.blocks_available;
  answer.f_files = status.files;
  answer.f_ffree = answer.f_favail = status.files_free;
  answer.f_namemax = 255;
  fuse_reply_statfs(take(), &answer);
  in_flight_->remove(id_);
}

void Request::ioctl_result(const void* bytes, std::size_t size, int errnum) {
  fuse_reply_ioctl(take(), -errnum, bytes, size);
  in_flight_->remove(id_);
}

struct stat stat_of(const vfs::NodeAttributes& attributes) {
  struct stat result {};
  result.st_ino = attributes.ino;
  result.st_mode = attributes.mode;
  result.st_nlink = attributes.links;
  result.st_uid = attributes.uid;
  result.st_gid = attributes.gid;
  result.st_size = static_cast<off_t>(attributes.size);
  result.st_blocks = static_cast<blkcnt_t>(attributes.blocks);
  result.st_blksize = 4096;
  result.st_rdev = attributes.device;
  result.st_atim = timespec_of(attributes.atime);
  result.st_mtim = timespec_of(attributes.mtime);
  result.st_ctim = timespec_of(attributes.ctime);
  return result;
}

fuse_entry_param entry_param(const vfs::Entry& entry) {
  fuse_entry_param param{};
  param.ino = entry.node;
  param.attr = stat_of(entry.attributes);
  param.attr_timeout = entry.attributes_timeout;
  param.entry_timeout = entry.entry_timeout;
  return param;
}

}  // namespace playfs::fuse
