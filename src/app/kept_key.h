// The Idempotency-Key of a POST, on disk before the POST is sent and until it has its answer. So the same command, run
// again after a lost reply or a crash, sends the same key, and the service makes one record.
//
// Each key is an empty file, 0600, named after what is sent and the key, in a directory of the site's state. A service
// remembers a key per caller, so the name also depends on the caller. The sender holds a lock on the file: if the same
// command runs twice at the same time, each run gets a key of its own, since both are intended. Keys are kept for a
// day, and only the newest 64.
//
// A value for one thread. Blocking local I/O. If the disk takes no file, the POST is sent nevertheless.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/fd.h"
#include "model/json.h"
#include "runtime/client_stack.h"

namespace playfs::app {

class KeptKey {
 public:
  static constexpr std::size_t kMost = 64;
  /// Services may forget keys, so an older one would perhaps make a second record after all.
  static constexpr std::chrono::hours kLongest{24};

  /// The key of an earlier POST of this body that had no answer, else a new one.
  static KeptKey of(runtime::ClientStack& stack, const std::string& collection, const JsonObject& body);
  /// A key that is derived from what is sent, so that nothing need be stored.
  static KeptKey given(std::string key);
  /// Whether an earlier POST of this body had no answer.
  static bool is_awaited(runtime::ClientStack& stack, const std::string& collection, const JsonObject& body);

  [[nodiscard]] const std::string& text() const { return key_; }
  /// Whether the same command will send it again.
  [[nodiscard]] bool is_kept() const { return !path_.empty(); }
  /// The POST has its answer.
  void forget();

 private:
  std::string key_, path_;
  UniqueFd lock_;
};

}  // namespace playfs::app
