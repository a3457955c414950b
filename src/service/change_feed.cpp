#include "service/change_feed.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <list>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "model/json.h"
#include "service/collections.h"
#include "service/stored_time.h"
#include "wire/json.h"

namespace playfs::service {

namespace {

using std::chrono::steady_clock;

constexpr std::size_t kPageSize = 256;
constexpr std::size_t kLargestText = 64 * 1024;
/// Pages read at one go, so that subscribers far behind do not hold up the others.
constexpr std::size_t kPagesAtOnce = 16;
constexpr std::chrono::minutes kBetweenComplaints{1};
constexpr std::size_t kLongestSiteId = 64;
constexpr std::int64_t kLatestTime = std::numeric_limits<std::int64_t>::max() / 1'000;
/// Servers on one store have clocks of their own.
constexpr std::chrono::minutes kClocksDiffer{1};

}  // namespace

std::string print_change_cursor(const ChangeCursor& cursor) {
  std::string text = cursor.site_id + '.' + std::to_string(cursor.number);
  if (cursor.changed_at) text += '.' + std::to_string(to_column(*cursor.changed_at));
  return text;
}

std::optional<ChangeCursor> parse_change_cursor(std::string_view text) {
  const auto dot = text.find('.');
  if (dot == std::string_view::npos || dot == 0 || dot > kLongestSiteId) return std::nullopt;
  ChangeCursor cursor{std::string(text.substr(0, dot))};
  const bool is_plain = std::all_of(cursor.site_id.begin(), cursor.site_id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data() + dot + 1, end, cursor.number);
  if (!is_plain || error != std::errc() || cursor.number < 0) return std::nullopt;
  if (stop != end) {
    std::int64_t time = 0;
    if (std::from_chars(stop + 1, end, time).ec != std::errc()) return std::nullopt;
    if (time < 0 || time > kLatestTime) return std::nullopt;
    cursor.changed_at = from_column(time);
  }
  if (print_change_cursor(cursor) != text) return std::nullopt;
  return cursor;
}

Result<ChangeCursor> newest_cursor(Store& store) {
  PLAYFS_TRY(const auto newest, store.last_change(kNewest));
  if (!newest) return ChangeCursor{store.site_id()};
  return ChangeCursor{store.site_id(), newest->number, newest->updated_at};
}

Result<bool> is_known(Store& store, const ChangeCursor& cursor) {
  if (cursor.site_id != store.site_id()) return false;
  PLAYFS_TRY(const Position newest, store.newest_change());
  if (cursor.number > newest) return false;
  if (!cursor.changed_at) return true;
  PLAYFS_TRY(const auto last, store.last_change(cursor.number));
  // A record that has changed again has only the later number.
  if (!last) return true;
  if (last->number == cursor.number) return last->updated_at == *cursor.changed_at;
  return last->updated_at.nanoseconds - cursor.changed_at->nanoseconds <=
         std::chrono::nanoseconds(kClocksDiffer).count();
}

std::string print_change(std::string_view site_id, const Change& change) {
  JsonObject data{
      {"collection", change.collection}, {"id", change.id}, {"updated_at", format_iso8601(change.updated_at)}};
  const Collection* collection = find_collection(change.collection);
  if (collection && !change.belongs_to.empty()) data.append(std::string(collection->belongs_by), change.belongs_to);
  // JSON has no line breaks, so a field takes one line.
  return "id: " + print_change_cursor({std::string(site_id), change.number, change.updated_at}) +
         "\nevent: change\ndata: " + wire::to_text(Json(std::move(data))) + "\n\n";
}

std::string print_reset(const ChangeCursor& cursor) {
  return "id: " + print_change_cursor(cursor) + "\nevent: reset\ndata: {}\n\n";
}

struct ChangeFeed::Subscriber {
  Subscriber(Take to, Position after) : take(std::move(to)), position(after) {}
  const Take take;
  // Guarded by the state's mutex.
  Position position;
  bool wants_more = true;
  steady_clock::time_point last = steady_clock::now();  ///< when it last got something
  std::list<std::shared_ptr<Subscriber>>::iterator place;
};

/// What the feed and its subscriptions share. `run` is the feed's thread.
struct ChangeFeed::State {
  State(Store& from, Timing times) : store(from), timing(times) {}

  using Subscribers = std::vector<std::shared_ptr<Subscriber>>;

  void wake() PLAYFS_REQUIRES(mutex) {
    woken = true;
    changed.notify_one();
  }

  void run();
  /// Waits until there may be something to do; false at the end.
  bool wait();
  /// Whether any subscriber got a text.
  Result<bool> serve_all();
  /// Finds the subscribers whose next text is there (by position), and those that are due a heartbeat.
  void collect(std::map<Position, Subscribers>& behind, Subscribers& silent);
  /// Finds out whether the store has lost the newest change that was seen. It may have others instead, which have been
  /// given the same numbers, so no subscriber knows what it has missed: all are put ahead of the store.
  Status look_for_loss(Position last_number);
  /// Resets subscribers that are ahead of the store.
  Status reset_those_ahead();
  Status serve(Position position, const Subscribers& group);
  void give(const Subscribers& group, const Text& text, std::optional<Position> end);

  Store& store;
  const Timing timing;
  const Text heartbeat = std::make_shared<const std::string>(":\n\n");
  std::thread thread;

  Mutex mutex;
  Condition changed;  ///< for the thread while it waits for something to do
  Condition ended;    ///< for the thread while it rests
  std::list<std::shared_ptr<Subscriber>> subscribers PLAYFS_GUARDED_BY(mutex);
  Position newest PLAYFS_GUARDED_BY(mutex) = 0;  ///< as far as the thread knows
  bool woken PLAYFS_GUARDED_BY(mutex) = false;
  bool ending PLAYFS_GUARDED_BY(mutex) = false;

  // For the thread alone.
  std::optional<Change> seen;  ///< the newest change when it looked
  Position stopped_at = 0;     ///< the position served last, where the next turn of those behind goes on
  std::optional<steady_clock::time_point> complained;
};

void ChangeFeed::State::run() {
  while (wait()) {
    auto served = serve_all();
    if (!served && (!complained || steady_clock::now() - *complained >= kBetweenComplaints)) {
      complained = steady_clock::now();
      log_warning("changes cannot be read: " + served.error().message);
    }
    if (served && !*served) continue;
    const auto end = steady_clock::now() + (served ? timing.rest : timing.retry);
    MutexLock lock(mutex);
    for (auto now = steady_clock::now(); !ending && now < end; now = steady_clock::now())
      ended.wait_for(mutex, end - now);
  }
}

bool ChangeFeed::State::wait() {
  MutexLock lock(mutex);
  while (!ending && subscribers.empty()) changed.wait(mutex);
  const auto end = steady_clock::now() + timing.poll;
  for (auto now = steady_clock::now(); !ending && !woken && now < end; now = steady_clock::now())
    changed.wait_for(mutex, end - now);
  woken = false;
  return !ending;
}

Result<bool> ChangeFeed::State::serve_all() {
  PLAYFS_TRY(Position last_number, store.newest_change());
  {
    MutexLock lock(mutex);
    newest = last_number;
  }
  PLAYFS_CHECK(look_for_loss(last_number));
  PLAYFS_CHECK(reset_those_ahead());
  std::map<Position, Subscribers> behind;
  Subscribers silent;
  collect(behind, silent);
  give(silent, heartbeat, std::nullopt);
  if (behind.empty()) return !silent.empty();

  // First the group that lacks only the latest changes, then the groups further behind, in turns.
  auto foremost = std::prev(behind.end());
  PLAYFS_CHECK(serve(foremost->first, foremost->second));
  behind.erase(foremost);
  auto next = behind.lower_bound(stopped_at);
  for (std::size_t pages = 1; pages < kPagesAtOnce && !behind.empty(); ++pages) {
    if (next == behind.begin()) next = behind.end();
    --next;
    stopped_at = next->first;
    PLAYFS_CHECK(serve(next->first, next->second));
    next = behind.erase(next);
  }
  if (behind.empty()) return true;
  MutexLock lock(mutex);
  wake();
  return true;
}

void ChangeFeed::State::collect(std::map<Position, Subscribers>& behind, Subscribers& silent) {
  const auto now = steady_clock::now();
  MutexLock lock(mutex);
  for (const auto& each : subscribers) {
    if (!each->wants_more) continue;
    if (each->position < newest) behind[each->position].push_back(each);
    else if (now - each->last >= timing.heartbeat) silent.push_back(each);
  }
}

Status ChangeFeed::State::look_for_loss(Position last_number) {
  if (seen && seen->number == last_number) return {};
  std::optional<Change> same;
  if (seen) {
    PLAYFS_TRY(same, store.last_change(seen->number));
  }
  // A record that has changed again has only the later number.
  const bool is_another = same && same->number == seen->number && same->updated_at != seen->updated_at;
  const bool is_lost = is_another || (seen && seen->number > last_number);
  PLAYFS_TRY(seen, store.last_change(kNewest));
  if (!is_lost) return {};
  MutexLock lock(mutex);
  for (const auto& each : subscribers) each->position = kNewest;
  return {};
}

Status ChangeFeed::State::reset_those_ahead() {
  Subscribers ahead;
  {
    MutexLock lock(mutex);
    for (const auto& each : subscribers)
      if (each->wants_more && each->position > newest) ahead.push_back(each);
  }
  if (ahead.empty()) return {};
  // New subscribers may have a number that this thread has not read yet. It alone changes positions.
  PLAYFS_TRY(const ChangeCursor now, newest_cursor(store));
  std::erase_if(ahead, [&](const auto& each) { return each->position <= now.number; });
  give(ahead, std::make_shared<const std::string>(print_reset(now)), now.number);
  return {};
}

Status ChangeFeed::State::serve(Position position, const Subscribers& group) {
  PLAYFS_TRY(auto changes, store.changes(position, kPageSize));
  if (changes.empty()) return {};
  std::string text;
  for (const Change& change : changes) {
    text += print_change(store.site_id(), change);
    position = change.number;
    if (text.size() >= kLargestText) break;
  }
  give(group, std::make_shared<const std::string>(std::move(text)), position);
  return {};
}

void ChangeFeed::State::give(const Subscribers& group, const Text& text, std::optional<Position> end) {
  if (group.empty()) return;
  const auto now = steady_clock::now();
  {
    MutexLock lock(mutex);
    for (const auto& each : group) {
      each->wants_more = false;
      each->last = now;
      if (end) each->position = *end;
    }
  }
  for (const auto& each : group) each->take(text);
}

ChangeFeed::Subscription::Subscription(std::shared_ptr<State> state, std::shared_ptr<Subscriber> subscriber)
    : state_(std::move(state)), subscriber_(std::move(subscriber)) {}

ChangeFeed::Subscription::~Subscription() {
  MutexLock lock(state_->mutex);
  state_->subscribers.erase(subscriber_->place);
}

void ChangeFeed::Subscription::more() {
  MutexLock lock(state_->mutex);
  subscriber_->wants_more = true;
  if (subscriber_->position != state_->newest) state_->wake();
}

ChangeFeed::ChangeFeed(Store& store, Timing timing) : state_(std::make_shared<State>(store, timing)) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

ChangeFeed::~ChangeFeed() {
  {
    MutexLock lock(state_->mutex);
    state_->ending = true;
    state_->changed.notify_one();
    state_->ended.notify_one();
  }
  state_->thread.join();
}

void ChangeFeed::look() {
  MutexLock lock(state_->mutex);
  if (!state_->subscribers.empty()) state_->wake();
}

std::unique_ptr<ChangeFeed::Subscription> ChangeFeed::subscribe(Position after, Take take) {
  auto subscriber = std::make_shared<Subscriber>(std::move(take), after);
  MutexLock lock(state_->mutex);
  subscriber->place = state_->subscribers.insert(state_->subscribers.end(), subscriber);
  state_->wake();
  return std::make_unique<Subscription>(state_, subscriber);
}

Store& ChangeFeed::store() const { return state_->store; }

}  // namespace playfs::service
