// Parses Server-Sent Events (`text/event-stream`) as they arrive, and the changes that a site tells with them.
//
// Pieces may end anywhere. Everything is untrusted: what exceeds the limits is dropped and counted, with the event that
// it belongs to, and takes no memory. For one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace playfs::wire {

struct ServerEvent {
  std::string name;  ///< "message" if it has none
  std::string data;
  std::string id;  ///< of this event, or of the last one before it that had one
};

class ServerEvents {
 public:
  static constexpr std::size_t kLongestLine = 16 << 10;
  static constexpr std::size_t kLargestEvent = 64 << 10;  ///< all lines of its data

  /// Calls `take` for each event that this piece completes.
  void feed(std::string_view piece, const std::function<void(const ServerEvent&)>& take);

  /// The delay before a reconnection that the server asked for last.
  [[nodiscard]] std::optional<std::chrono::milliseconds> retry() const { return retry_; }
  /// How many lines and events were too large.
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  void end_line(const std::function<void(const ServerEvent&)>& take);
  void take_field(std::string_view line);
  void drop_event();

  std::string line_;
  ServerEvent event_;
  bool has_data_ = false;
  bool is_dropped_ = false;   ///< the current event is too large
  bool is_skipping_ = false;  ///< up to the end of a line that is too long
  bool after_cr_ = false;     ///< a following LF belongs to the same line end
  bool is_first_line_ = true;
  std::optional<std::chrono::milliseconds> retry_;
  std::uint64_t dropped_ = 0;
};

/// A record that was added or changed.
struct Change {
  std::string collection, id;
  std::string updated_at;  ///< empty if the site does not say
  std::string belongs_to;  ///< a message's thread, a revision's project; empty if nothing

  bool operator==(const Change&) const = default;
};

/// The data of a "change" event; nullopt if it names no record.
std::optional<Change> decode_change(std::string_view data);

}  // namespace playfs::wire
