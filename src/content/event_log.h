// What happened, for `.playfs/errors.ndjson`, `.playfs/events`, `status` and `playfs watch`.
//
// Two bounded rings of JSON documents. Thread-safe; listeners run on the appending thread without a lock held, and must
// not block.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/json.h"

namespace playfs::content {

class EventLog {
 public:
  explicit EventLog(const Clock& clock);
  ~EventLog();

  /// `subject` is what the error is about: a path in the mount, a record, a host.
  void error(const std::string& subject, const Error& error);
  /// The same for what was refused here, which a script may repeat without end: the same refusal, and any beyond some
  /// tens a minute, is not logged again, so that it displaces nothing else.
  void refusal(const std::string& subject, const Error& error);
  void event(const std::string& kind, JsonObject fields);

  /// The retained lines as NDJSON, oldest first.
  [[nodiscard]] std::string errors_text() const;
  [[nodiscard]] std::string events_text() const;
  /// `listener` runs after each append, on the appending thread.
  void on_append(std::function<void()> listener);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace playfs::content
