// What a command waits for, said on stderr while it waits, by a thread of its own: on a terminal in one line that is
// kept current, elsewhere (a log, a program) in one line for each wait that has become long.
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
  /// Both are called on another thread until the destructor has run, on a terminal `words` every `interval`, elsewhere
  /// `news` every kLookAtWaitEvery. `words` is shown as it is now, `news` is printed each time that it is not empty.
  ShownProgress(Output& out, std::chrono::milliseconds interval, std::function<std::string()> words,
                std::function<std::string()> news = {});
  ~ShownProgress();
  ShownProgress(const ShownProgress&) = delete;
  ShownProgress& operator=(const ShownProgress&) = delete;

 private:
  void show();
  void tell();

  Output& out_;
  const std::function<std::string()> words_, news_;
  bool is_shown_ = false;
  std::optional<Repeated> updates_;
};

/// How often to look whether a wait has become long.
inline constexpr std::chrono::milliseconds kLookAtWaitEvery{500};

/// "No answer for 3 s (57 s left): GET /threads at SITE"; "" in the first two seconds.
std::string words_for_wait(const std::string& site, const std::string& what, std::chrono::nanoseconds waited,
                           std::chrono::nanoseconds left);

/// Waits that have become long, each told once. For one thread.
class LongWaits {
 public:
  /// What to print of the present wait; "" if it is told already, or short.
  std::string news(const std::string& site, const std::string& what, std::chrono::nanoseconds waited,
                   std::chrono::nanoseconds left);

 private:
  bool is_told_ = false;
};

}  // namespace playfs::app
