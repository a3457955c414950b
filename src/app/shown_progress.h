// What a command waits for, shown on a terminal while it waits: one line on stderr, kept current by a thread of its
// own.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "app/output.h"
#include "app/repeated.h"

namespace playfs::app {

class ShownProgress {
 public:
  /// `words` is called every `interval`, on another thread, until the destructor has run; "" shows nothing.
  ShownProgress(Output& out, std::chrono::milliseconds interval, std::function<std::string()> words);
  ~ShownProgress();
  ShownProgress(const ShownProgress&) = delete;
  ShownProgress& operator=(const ShownProgress&) = delete;

 private:
  void show();

  Output& out_;
  const std::function<std::string()> words_;
  bool is_shown_ = false;
  std::optional<Repeated> updates_;
};

/// How often to look whether a wait has become long.
inline constexpr std::chrono::milliseconds kLookAtWaitEvery{500};

/// "No answer for 3 s (57 s left): GET /threads at SITE"; "" in the first two seconds.
std::string words_for_wait(const std::string& site, const std::string& what, std::chrono::nanoseconds waited,
                           std::chrono::nanoseconds left);

}  // namespace playfs::app
