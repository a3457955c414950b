// A request of the kernel's on its way to an answer: exactly one, whatever happens in between.
//
// A Request is moved into the Reply that the vfs is given. It answers by one of its methods; one that is destroyed
// unanswered answers EIO, so that no process is ever left waiting. Answering is thread-safe in the sense that any one
// thread may do it. Requests in flight are known to their InFlight, which hands out cancel tokens, takes the kernel's
// INTERRUPTs, and lets an unmount wait for the last answer.
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
  /// Cancels all of them and those to come.
  void cancel_all();
  /// Waits until every request is answered; false where that took longer than `limit`.
  bool wait_until_empty(std::chrono::milliseconds limit);
  /// Of a request that is not answered yet, of which the kernel sends no INTERRUPT: interrupts it when `caller` dies.
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
  CallerWatch callers_{[this](std::uint64_t id) { interrupt(id); }};  ///< the first to end
};

class Request {
 public:
  /// REQUIRES: `in_flight` outlives the request and is the libfuse session's user data's, see operations.cpp.
  Request(fuse_req_t handle, InFlight& in_flight);
  Request(Request&& other) noexcept;
  Request& operator=(Request&&) = delete;
  ~Request();

  /// The process behind the request, and the token that its Ctrl-C cancels.
  [[nodiscard]] const vfs::Caller& caller() const { return caller_; }
  /// Its number among those in flight.
  [[nodiscard]] std::uint64_t id() const { return id_; }

  void error(const Error& error) { error_number(number_of(error)); }
  void error_number(int errnum);
  void done() { error_number(0); }
  /// False where the kernel no longer wants the answer: the lookup it would have counted must be taken back.
  [[nodiscard]] bool entry(const vfs::Entry& entry);
  void attributes(const vfs::AttributesReply& reply);
  void link_target(const std::string& target);
  [[nodiscard]] bool data(std::string_view bytes);
  void written(std::size_t count);
  void xattr_size(std::size_t size);
  void offset(std::uint64_t value);
  void file_system_status(const vfs::FileSystemStatus& status);
  /// The kernel hands the struct back to the caller also where `errnum` says that the call failed.
  void ioctl_result(const void* bytes, std::size_t size, int errnum = 0);

 private:
  static int number_of(const Error& error);
  /// Gives up the handle: the answer that follows is the only one.
  fuse_req_t take();

  fuse_req_t handle_;
  InFlight* in_flight_;
  std::uint64_t id_ = 0;
  vfs::Caller caller_;
};

/// In the form libfuse packs into replies and directories.
fuse_entry_param entry_param(const vfs::Entry& entry);
struct stat stat_of(const vfs::NodeAttributes& attributes);

}  // namespace playfs::fuse
