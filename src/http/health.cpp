#include "http/health.h"

#include <utility>

#include "base/log.h"

namespace playfs::http {

void Health::open(std::function<Status()> try_to_write) {
  try_to_write_ = std::move(try_to_write);
  is_open_.store(true, std::memory_order_release);
}

std::string_view Health::why_not_ready() {
  constexpr std::string_view cannot_write = "the store cannot be written";
  if (is_starting()) return "starting";
  if (is_draining_) return "draining";
  {
    MutexLock lock(mutex_);
    const auto age = tried_ ? std::optional(clock_.steady() - *tried_) : std::nullopt;
    if (age && *age < kFresh) return could_write_ ? "" : cannot_write;
    if (is_trying_) return could_write_ && age && *age < kPatience ? "" : cannot_write;
    is_trying_ = true;
  }
  const Status written = try_to_write_();
  if (!written) log_warning("not ready: " + written.error().message);
  MutexLock lock(mutex_);
  is_trying_ = false;
  tried_ = clock_.steady();
  could_write_ = written.has_value();
  return could_write_ ? "" : cannot_write;
}

}  // namespace playfs::http
