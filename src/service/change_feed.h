// The changes of a store as they happen, in this process and in others on the same data, for any number of subscribers.
//
// One thread looks for changes: at once when this process has written, ten times a second for other processes' writes,
// and not at all while nobody is subscribed. It reads and formats what is new once, for all subscribers at the same
// position. A subscriber that falls behind costs no memory, only its position: it gets the rest from the store, one
// page after another. A subscriber that is ahead of the store, because that was restored
// from a copy, gets a reset. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "service/store.h"

namespace playfs::service {

/// A place in a site's changes, as clients pass it back.
struct ChangeCursor {
  std::string site_id;
  Position number = 0;
  /// When the change of that number was made. A store that was restored from a copy gives numbers again, but not with
  /// the same times. nullopt: nothing has changed yet, or an earlier version printed the cursor.
  std::optional<WallTime> changed_at = {};
};
std::string print_change_cursor(const ChangeCursor& cursor);
/// nullopt for anything that print_change_cursor cannot have printed, for whatever site.
std::optional<ChangeCursor> parse_change_cursor(std::string_view text);

/// The place after the newest change.
Result<ChangeCursor> newest_cursor(Store& store);
/// Whether the store has given out the cursor, and was not restored from an earlier copy since.
Result<bool> is_known(Store& store, const ChangeCursor& cursor);

/// A change as a Server-Sent Event.
std::string print_change(std::string_view site_id, const Change& change);
/// An event that makes clients forget what they know; they go on from this place.
std::string print_reset(const ChangeCursor& cursor);

class ChangeFeed {
 public:
  struct Timing {
    std::chrono::milliseconds rest{20};           ///< between two batches, so that many changes share one
    std::chrono::milliseconds poll{100};          ///< between looks for other processes' changes
    std::chrono::milliseconds heartbeat{15'000};  ///< of silence, until a subscriber gets a comment
    std::chrono::milliseconds retry{1'000};       ///< after the store has failed
  };

  /// Some kilobytes of Server-Sent Events, or a comment.
  using Text = std::shared_ptr<const std::string>;
  /// Called on the feed's thread; must not block, and must not throw.
  using Take = std::function<void(const Text&)>;

 private:
  struct Subscriber;
  struct State;

 public:
  /// Ends when it is destroyed; a call of `take` that has begun by then may end later. It may outlive the feed.
  class Subscription {
   public:
    Subscription(std::shared_ptr<State> state, std::shared_ptr<Subscriber> subscriber);
    ~Subscription();
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

    /// Asks for the next text: nothing follows one that has not been processed yet. Callable on any thread, also from
    /// within `take`.
    void more();

   private:
    const std::shared_ptr<State> state_;
    const std::shared_ptr<Subscriber> subscriber_;
  };

  /// The store must outlive the feed.
  explicit ChangeFeed(Store& store) : ChangeFeed(store, Timing()) {}
  ChangeFeed(Store& store, Timing timing);
  ~ChangeFeed();
  ChangeFeed(const ChangeFeed&) = delete;
  ChangeFeed& operator=(const ChangeFeed&) = delete;

  /// Call after this process has written. Cheap.
  void look();

  /// Gives `take` the changes after that number, oldest first; the first text without being asked for.
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(Position after, Take take);

  [[nodiscard]] Store& store() const;

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace playfs::service
