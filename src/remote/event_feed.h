// What arrives on one connection of an EventStream, as events and within bounds. For one thread; no I/O.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/json.h"
#include "wire/server_events.h"

namespace playfs::remote {

/// How much a site may send before it is left alone. Shared by its connections.
class EventAllowance {
 public:
  /// Bytes that may come at once, such as what was missed in an hour; more are due per second.
  static constexpr double kBytes = 8 << 20, kBytesPerSecond = 256 << 10;
  /// The same for events that make no sense.
  static constexpr double kNonsense = 100, kNonsensePerSecond = 0.1;

  /// Returns what is wrong, if it is too much.
  std::optional<std::string> spend(std::size_t bytes, std::uint64_t nonsense, SteadyTime now);

 private:
  double bytes_ = kBytes, nonsense_ = kNonsense;
  std::optional<SteadyTime> at_;
};

class EventFeed {
 public:
  /// What a piece has brought.
  struct News {
    bool begins = false;                ///< the site has said at which position its events begin
    bool is_reset = false;              ///< the site does not know the position that it was asked for, or gave out
    bool is_missed = false;             ///< an event was too large to be read
    std::vector<wire::Change> changes;  ///< after that
    std::uint64_t nonsense = 0;
  };
  News take(std::string_view piece);

  [[nodiscard]] bool has_begun() const { return has_begun_; }
  /// The position after the last event; empty: unknown.
  [[nodiscard]] const std::string& cursor() const { return cursor_; }
  [[nodiscard]] std::optional<std::chrono::milliseconds> retry() const { return parser_.retry(); }

 private:
  void take_event(const wire::ServerEvent& event, News& news);

  wire::ServerEvents parser_;
  std::string cursor_;
  bool has_begun_ = false;
  bool was_reset_ = false;
};

/// The path of something that the site offers besides its collections (`what`, such as "events"), from its description.
/// Empty if there is none, or if it names another host.
std::string path_of(std::string_view what, const JsonObject& description, std::string_view origin);

}  // namespace playfs::remote
