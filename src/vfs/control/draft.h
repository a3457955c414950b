// What has been written of a request's text so far, on disk before each of its writes is answered: nobody sees whether
// a mount that dies had seen the close, which returns at once. A text that its mount did not get to is kept for its
// writer by the next one (RequestJournal::left_behind), since it may be half of what was meant.
//
// Thread-safe. keep(), give_up() and end() do local I/O, so they belong on a disk thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/mutex.h"
#include "base/result.h"

namespace playfs::vfs {

class RequestJournal;
class RequestText;

class Draft {
 public:
  /// `path`: of the control file. `journal` must outlive it.
  Draft(RequestJournal& journal, std::string path);

  /// Writes what `text` has now, synced, unless the draft has ended.
  [[nodiscard]] Status keep(const RequestText& text) PLAYFS_EXCLUDES(io_);
  /// Saves what `text` has, unless the draft has ended: it was accepted, and will not be sent for `why`. Returns the
  /// error that says where it is.
  [[nodiscard]] Error give_up(const RequestText& text, Error why) PLAYFS_EXCLUDES(io_);
  /// The text is in the journal, or has its outcome.
  void end() PLAYFS_EXCLUDES(io_);
  /// By which a journalled request names it.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  RequestJournal& journal_;
  const std::string path_, name_;
  Mutex io_;  ///< held over local I/O: the texts of two writes do not overtake each other
  bool is_kept_ PLAYFS_GUARDED_BY(io_) = false;
  bool has_ended_ PLAYFS_GUARDED_BY(io_) = false;
};

}  // namespace playfs::vfs
