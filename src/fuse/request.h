// A kernel request on its way to its answer: exactly one, whatever happens in between.
//
// A Request is moved into the Reply that the vfs receives, and is answered through one of its methods; if it is
// destroyed unanswered it answers EIO, so that no process waits forever. Any one thread may answer. InFlight tracks the
// requests: it provides cancel tokens, receives the kernel's INTERRUPTs, and lets an unmount wait for the last answer.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "base/cancel.h"
#include "base/mutex.h"
#include "base/result.h"
#include "fuse/caller_watch.h"
#include "fuse/libfuse.h"
#include "vfs/file_system.h"

namespace playfs::fuse {

class InFlight {
 public:
  /// Cancels all requests, present and future.
  void cancel_all();
  /// Waits until every request is answered; false if that takes longer than `limit`.
  bool wait_until_empty(std::chrono::milliseconds limit);
  /// Interrupts a request when `caller` dies, unless it is answered: for requests that get no INTERRUPT from the
  /// kernel.
  void interrupt_without(pid_t caller, std::uint64_t id) PLAYFS_EXCLUDES(mutex_);

 private:
  friend class Request;
  std::uint64_t add(CancelSource source);
  void remove(std::uint64_t id);
  void interrupt(std::uint64_t id);

  Mutex mutex_;
  Condition changed_;
  bool cancelled_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::uint64_t next_id_ PLAYFS_GUARDED_BY(mutex_) = 1;
  struct Known {
    CancelSource source;
    UniqueFd caller;  ///< open while its caller is watched
  };
  std::unordered_map<std::uint64_t, Known> known_ PLAYFS_GUARDED_BY(mutex_);
  CallerWatch callers_{[this](std::uint64_t id) { interrupt(id); }};  ///< last, so that its thread ends first
};

class Request {
 public:
  /// REQUIRES: `in_flight` outlives the request, and is the libfuse session's user data, see operations.cpp.
  Request(fuse_req_t handle, InFlight& in_flight);
  Request(Request&& other) noexcept;
  Request& operator=(Request&&) = delete;
  ~Request();

  /// The process behind the request, and the token that an interrupt (Ctrl-C) cancels.
  [[nodiscard]] const vfs::Caller& caller() const { return caller_; }
  /// Its number among the requests in flight.
  [[nodiscard]] std::uint64_t id() const { return id_; }

  void error(const Error& error) { error_number(number_of(error)); }
  void error_number(int errnum);
  void done() { error_number(0); }
  /// False if the kernel no longer wants the answer: the lookup it would have counted must be undone.
  [[nodiscard]] bool entry(const vfs::Entry& entry);
  void attributes(const vfs::AttributesReply& reply);
  void link_target(const std::string& target);
  [[nodiscard]] bool data(std::string_view bytes);
  void written(std::size_t count);
  void xattr_size(std::size_t size);
  void offset(std::uint64_t value);
  void file_system_status(const vfs::FileSystemStatus& status);
  /// The kernel copies the struct back to the caller even if `errnum` reports a failure.
  void ioctl_result(const void* bytes, std::size_t size, int errnum = 0);

 private:
  static int number_of(const Error& error);
  /// Gives up the handle, so that there is only one answer.
  fuse_req_t take();

  fuse_req_t handle_;
  InFlight* in_flight_;
  std::uint64_t id_ = 0;
  vfs::Caller caller_;
};

/// In the form that libfuse packs into replies and directories.
fuse_entry_param entry_param(const vfs::Entry& entry);
struct stat stat_of(const vfs::NodeAttributes& attributes);

}  // namespace playfs::fuse
