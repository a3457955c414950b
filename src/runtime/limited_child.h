// A child process that does what may block forever, such as accessing a mount whose process hangs, and is abandoned if
// it is not back in time. Blocking; no shared state. Not for processes with threads that the act would need.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/fd.h"

namespace playfs::runtime {

class LimitedChild {
 public:
  /// Starts it. In the child `act` is called, with no descriptor open but 0, which takes what it returns.
  LimitedChild(const std::function<std::string()>& act, std::chrono::milliseconds patience);
  LimitedChild(LimitedChild&& other) noexcept;
  LimitedChild& operator=(LimitedChild&&) = delete;
  ~LimitedChild();

  /// Waits until the child has ended, up to `patience` from its start; nullopt if it takes longer.
  [[nodiscard]] std::optional<std::string> answer();

 private:
  std::chrono::steady_clock::time_point due_;
  pid_t child_ = -1;
  UniqueFd answer_;
};

}  // namespace playfs::runtime
