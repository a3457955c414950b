#include "publish/backoff.h"

#include <algorithm>

namespace playfs::publish {

namespace {
/// A service that asks for a day may or may not mean it, so look sooner.
constexpr std::chrono::seconds kLongestObeyed = std::chrono::minutes(15);
}  // namespace

std::chrono::milliseconds backoff_after(const Error& error, int streak, std::chrono::milliseconds first,
                                        std::chrono::milliseconds longest) {
  auto length = first;
  for (int i = 1; i < streak && length < longest; ++i) length *= 2;
  length = std::min(length, longest);
  if (error.retry_after)
    length = std::max(length, std::chrono::milliseconds(std::min(*error.retry_after, kLongestObeyed)));
  return length;
}

}  // namespace playfs::publish
