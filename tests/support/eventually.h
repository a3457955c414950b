// Waits for another thread, within bounds: replaces a sleep on which the result depends, and a loop that may never end.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace playfs::test {

/// Waits until it holds; false after as long as a stuck test may take. Inside ASSERT_TRUE, a failure shows what was
/// waited for.
inline bool eventually(const std::function<bool()>& holds, std::chrono::milliseconds limit = std::chrono::seconds(50)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace playfs::test
