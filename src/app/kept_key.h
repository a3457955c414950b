// The Idempotency-Key of a POST, on disk before the POST is sent and until its outcome is known. So the same command,
// run again after a lost reply or a crash, sends the same key, and the service makes one record.
//
// Each key is an empty file, 0600, in a directory of the site's state, named after what is sent, the caller and the
// key. A service remembers a key per caller, so a key is sent again as the caller that sent it first, whoever is signed
// in by then. The sender holds a lock on the file: if the same command runs twice at the same time, each run gets a key
// of its own, since both are intended. Keys are kept for a day; while there are kMost, no new one is made.
//
// A value for one thread. Blocking local I/O. If the disk takes no file, the POST is sent nevertheless.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "model/json.h"
#include "runtime/client_stack.h"

namespace playfs::app {

class KeptKey {
 public:
  static constexpr std::size_t kMost = 1000;
  /// Services may forget keys, so an older one would perhaps make a second record after all.
  static constexpr std::chrono::hours kLongest{24};

  /// The key of an earlier POST of this body whose outcome is unknown, else a new one, or `fixed`: a key that follows
  /// from what is sent, which then counts instead of the body. Errors: unauthorized, if it was sent as somebody who is
  /// no longer signed in; busy, if there are too many.
  static Result<KeptKey> of(runtime::ClientStack& stack, const std::string& collection, const JsonObject& body,
                            std::string fixed = {});
  /// Whether the outcome of an earlier POST of this body is unknown.
  static bool is_awaited(runtime::ClientStack& stack, const std::string& collection, const JsonObject& body);

  [[nodiscard]] const std::string& text() const { return key_; }
  /// As whom to send it, if not as the present caller: see Client::create_record.
  [[nodiscard]] const std::optional<std::string>& as() const { return as_; }
  /// Whether the same command will send it again.
  [[nodiscard]] bool is_kept() const { return !path_.empty(); }
  /// Whether an earlier run sent it and did not learn the outcome. Then a refusal does not tell that outcome either.
  [[nodiscard]] bool is_repeated() const { return is_repeated_; }
  /// Its file; removed, the same command sends a new key.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The outcome is known.
  void forget();

 private:
  std::string key_, path_;
  std::optional<std::string> as_;
  bool is_repeated_ = false;
  UniqueFd lock_;
};

}  // namespace playfs::app
