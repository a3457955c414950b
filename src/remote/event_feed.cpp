#include "remote/event_feed.h"

#include <algorithm>
#include <utility>

namespace playfs::remote {

namespace {

constexpr std::size_t kLongestPath = 512;
constexpr std::size_t kLongestCursor = 200;

/// Whether a cursor can be sent back in a URL and a header. It is opaque otherwise.
bool is_cursor(std::string_view text) {
  auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           std::string_view("-._~:=").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= kLongestCursor && std::all_of(text.begin(), text.end(), is_plain);
}

}  // namespace

std::optional<std::string> EventAllowance::spend(std::size_t bytes, std::uint64_t nonsense, SteadyTime now) {
  const double passed = at_ ? std::chrono::duration<double>(now - *at_).count() : 0;
  at_ = now;
  bytes_ = std::min(kBytes, bytes_ + passed * kBytesPerSecond) - static_cast<double>(bytes);
  nonsense_ = std::min(kNonsense, nonsense_ + passed * kNonsensePerSecond) - static_cast<double>(nonsense);
  if (nonsense_ < 0) return "its events make no sense";
  if (bytes_ < 0) return "it sends more events than can be followed";
  return std::nullopt;
}

EventFeed::News EventFeed::take(std::string_view piece) {
  News news;
  const std::uint64_t dropped = parser_.dropped();
  parser_.feed(piece, [&](const wire::ServerEvent& event) { take_event(event, news); });
  // An event that was too large may have said anything.
  if (const std::uint64_t more = parser_.dropped() - dropped; more > 0) {
    news.nonsense += more;
    news.is_missed = has_begun_;
  }
  return news;
}

void EventFeed::take_event(const wire::ServerEvent& event, News& news) {
  if (is_cursor(event.id)) cursor_ = event.id;
  else if (!event.id.empty()) ++news.nonsense;
  if (event.name == "hello" || event.name == "reset") {
    const bool is_first = !std::exchange(has_begun_, true);
    news.begins = news.begins || is_first;
    if (event.name == "reset" && !std::exchange(was_reset_, true)) {
      news.is_reset = true;
      news.changes.clear();
    } else if (!is_first) {
      ++news.nonsense;
    }
  } else if (event.name == "change") {
    auto change = has_begun_ ? wire::decode_change(event.data) : std::nullopt;
    if (change) news.changes.push_back(std::move(*change));
    else ++news.nonsense;
  }
  // Ignores unknown kinds, which later versions may add; their bytes count against the allowance.
}

std::string path_of(std::string_view what, const JsonObject& description, std::string_view origin) {
  const Json* value = description.find(what);
  const std::string* text = value ? value->string() : nullptr;
  if (!text) return {};
  std::string_view path = *text;
  if (path.starts_with(origin)) path.remove_prefix(origin.size());
  const bool is_plain = std::all_of(path.begin(), path.end(), [](char c) {
    return c > ' ' && c < 0x7F && std::string_view("?#\\\"<>").find(c) == std::string_view::npos;
  });
  if (!path.starts_with('/') || path.starts_with("//") || path.size() > kLongestPath || !is_plain) return {};
  return std::string(path);
}

}  // namespace playfs::remote
