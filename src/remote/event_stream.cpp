#include "remote/event_stream.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/gate.h"
#include "base/mutex.h"
#include "base/text.h"
#include "remote/event_feed.h"

namespace playfs::remote {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kShortestRetry{100}, kLongestRetry{30'000};  // of those that a site may ask for
constexpr std::chrono::seconds kLongestPause{600};                  // that a site may ask for with 429 or 503
/// A connection that lasted this long was a good one: the next is made without a growing delay.
constexpr std::chrono::seconds kLasts{10};
/// How often recoveries may make a site without events be asked again.
constexpr std::chrono::seconds kAskedLately{60};

bool is_event_stream(const HttpResponse& response) {
  const std::string_view type = response.headers.get("Content-Type").value_or("");
  return equals_ignoring_case(trim(type.substr(0, type.find(';'))), "text/event-stream");
}

}  // namespace

class EventStream::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(Client& client, Executor& executor, const Clock& clock, Random& random, EventListener listener,
       EventStreamOptions options)
      : client_(client),
        executor_(executor),
        clock_(clock),
        random_(random),
        listener_(std::move(listener)),
        options_(options) {}

  void begin() {
    {
      MutexLock lock(mutex_);
      if (phase_ != Phase::unused) return;
      phase_ = Phase::under_way;
      why_not_ = "asking the site for them";
    }
    ask();
  }

  void recovered() {
    {
      MutexLock lock(mutex_);
      const bool waits =
          phase_ == Phase::failed || (phase_ == Phase::absent && clock_.steady() - since_ > kAskedLately);
      if (!waits) return;
    }
    wait(Phase::failed, nanoseconds(0), "connecting");
  }

  State state() {
    MutexLock lock(mutex_);
    return {phase_ == Phase::live, why_not_};
  }

  void close() { gate_->close(); }

 private:
  enum class Phase {
    unused,
    under_way,   ///< a request for the description, or a connection, that has not begun
    live,        ///< events report changes
    failed,      ///< waits before the next attempt
    absent,      ///< the site has no events; asked again later
    left_alone,  ///< the site misbehaved; asked again later
    ended,       ///< for good
  };

  /// One connection. Belongs to the transport's thread.
  struct Connection {
    EventFeed feed;
    SteadyTime since;
    bool resumes = false;  ///< from a position
    std::optional<Error> refusal;
    std::string misbehaviour;
  };
  using ConnectionPtr = std::shared_ptr<Connection>;

  template <class F>
  auto guarded(F f) {
    return Gate::guard(gate_, [self = shared_from_this(), f = std::move(f)](auto&&... args) mutable {
      f(std::forward<decltype(args)>(args)...);
    });
  }

  /// Runs `f` inside the gate; once that is closed, it says that nothing more is wanted.
  template <class F>
  auto in_gate(F f) {
    return [self = shared_from_this(), f = std::move(f)](const auto& argument) {
      const auto ticket = self->gate_->enter();
      return ticket && f(argument);
    };
  }

  void ask() {
    client_.get_description(gate_->closing(), guarded([this](Result<JsonObject> description) {
                              if (description) return described(*description);
                              const Error& error = description.error();
                              if (error.code == ErrorCode::offline) return end("offline");
                              if (is_outage(error.code)) return retry(error.message);
                              wait(Phase::absent, options_.ask_again, error.message);
                            }));
  }

  void described(const JsonObject& description) {
    std::string path = path_of("events", description, client_.origin());
    if (path.empty()) return wait(Phase::absent, options_.ask_again, "the site offers none");
    {
      MutexLock lock(mutex_);
      path_ = std::move(path);
    }
    connect();
  }

  void connect() {
    auto connection = std::make_shared<Connection>();
    connection->since = clock_.steady();
    std::string target;
    {
      MutexLock lock(mutex_);
      phase_ = Phase::under_way;
      why_not_ = "connecting";
      target = path_;
      connection->resumes = !cursor_.empty();
      if (connection->resumes) target += "?after=" + percent_encode(cursor_);
    }
    net::StreamReceiver receiver;
    receiver.begun = in_gate([connection, this](const HttpResponse& response) { return begun(*connection, response); });
    receiver.piece = in_gate([connection, this](std::string_view piece) { return arrived(*connection, piece); });
    receiver.ended = guarded([connection, this](const Status& status) { ended(*connection, status); });
    client_.stream(std::move(target), {{"Accept", "text/event-stream"}}, options_.limits, gate_->closing(),
                   std::move(receiver));
  }

  bool begun(Connection& connection, const HttpResponse& response) {
    if (response.status == 200 && is_event_stream(response)) return true;
    if (response.status == 200) {
      connection.misbehaviour = "it sends something else than events";
    } else {
      connection.refusal = wire::decode_error(response.status, "", response.headers.get("Retry-After"));
    }
    return false;
  }

  bool arrived(Connection& connection, std::string_view piece) {
    EventFeed::News news = connection.feed.take(piece);
    if (auto wrong = allowance_.spend(piece.size(), news.nonsense, clock_.steady())) {
      connection.misbehaviour = std::move(*wrong);
      return false;
    }
    // A client without a position has nothing that could be of another site, unless its position was just refused.
    const bool was_refused = news.begins && take_refused_position();
    const bool is_another = was_refused || (news.is_reset && (connection.resumes || !news.begins));
    if (is_another || news.is_reset || news.is_missed || (news.begins && !connection.resumes))
      listener_.reset(is_another ? Reset::another : Reset::missed);
    if (news.begins) {
      {
        MutexLock lock(mutex_);
        phase_ = Phase::live;
        why_not_.clear();
      }
      listener_.up(true);
    }
    if (!news.changes.empty()) listener_.changed(std::move(news.changes));
    if (connection.feed.has_begun() && !connection.feed.cursor().empty()) {
      MutexLock lock(mutex_);
      cursor_ = connection.feed.cursor();
    }
    return true;
  }

  bool take_refused_position() {
    MutexLock lock(mutex_);
    return std::exchange(is_position_refused_, false);
  }

  void ended(const Connection& connection, const Status& status) {
    if (connection.feed.has_begun()) listener_.up(false);
    if (!connection.misbehaviour.empty()) return leave_alone(connection.misbehaviour);
    if (connection.refusal) return refused(*connection.refusal, connection.resumes);
    if (!status) {
      const ErrorCode code = status.error().code;
      if (code == ErrorCode::not_supported || code == ErrorCode::offline) return end(status.error().message);
      if (!is_outage(code) && code != ErrorCode::interrupted) return leave_alone(status.error().message);
    }
    {
      MutexLock lock(mutex_);
      if (clock_.steady() - connection.since >= kLasts) failures_ = 0;
      retry_ = connection.feed.retry() ? connection.feed.retry() : retry_;
    }
    retry(status ? "the site has ended the connection" : status.error().message);
  }

  void refused(const Error& error, bool resumed) {
    if (error.http_status == 400 && resumed) {
      MutexLock lock(mutex_);
      cursor_.clear();
      is_position_refused_ = true;
    } else if (error.http_status < 500 && error.code != ErrorCode::rate_limited) {
      return wait(Phase::absent, options_.ask_again, error.message);
    }
    const auto asked = std::min(error.retry_after.value_or(std::chrono::seconds(0)), kLongestPause);
    retry(error.message, asked);
  }

  /// Later it begins anew, from no position.
  void leave_alone(const std::string& why) {
    {
      MutexLock lock(mutex_);
      cursor_.clear();
      allowance_ = {};
    }
    Error error{ErrorCode::refused_input, "the site's events are not used for a while: " + escape_for_terminal(why),
                "the mount asks the site from time to time instead"};
    if (listener_.gave_up) listener_.gave_up(error);
    wait(Phase::left_alone, options_.leave_alone, why);
  }

  void retry(const std::string& why, nanoseconds at_least = {}) {
    nanoseconds delay{0};
    {
      MutexLock lock(mutex_);
      delay = std::clamp(retry_.value_or(options_.first_delay), kShortestRetry, kLongestRetry);
      for (int i = 0; i < failures_ && delay < options_.longest_delay; ++i) delay *= 2;
      ++failures_;
    }
    delay = std::min<nanoseconds>(delay, options_.longest_delay);
    // Clients that lost the same server must not return together.
    delay = delay / 2 + nanoseconds(random_.next() % static_cast<std::uint64_t>((delay / 2).count() + 1));
    wait(Phase::failed, std::max(delay, at_least), why);
  }

  void wait(Phase phase, nanoseconds delay, const std::string& why) {
    std::uint64_t number = 0;
    bool is_known = false;
    {
      MutexLock lock(mutex_);
      phase_ = phase;
      why_not_ = why;
      since_ = clock_.steady();
      if (phase == Phase::absent) path_.clear();
      is_known = !path_.empty();
      number = ++waits_;
    }
    executor_.post_after(delay, guarded([this, number, is_known] {
                           {
                             MutexLock lock(mutex_);
                             if (waits_ != number) return;  // it went on earlier
                             phase_ = Phase::under_way;
                           }
                           if (is_known) connect();
                           else ask();
                         }));
  }

  void end(const std::string& why) {
    MutexLock lock(mutex_);
    phase_ = Phase::ended;
    why_not_ = why;
  }

  Client& client_;
  Executor& executor_;
  const Clock& clock_;
  Random& random_;
  const EventListener listener_;
  const EventStreamOptions options_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  EventAllowance allowance_;  ///< belongs to the only connection there is

  Mutex mutex_;
  Phase phase_ PLAYFS_GUARDED_BY(mutex_) = Phase::unused;
  std::string why_not_ PLAYFS_GUARDED_BY(mutex_) = "not used yet";
  std::string path_ PLAYFS_GUARDED_BY(mutex_);    ///< empty: not known
  std::string cursor_ PLAYFS_GUARDED_BY(mutex_);  ///< empty: none, changes are told from now on
  bool is_position_refused_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::optional<milliseconds> retry_ PLAYFS_GUARDED_BY(mutex_);
  int failures_ PLAYFS_GUARDED_BY(mutex_) = 0;  ///< since the last good connection
  std::uint64_t waits_ PLAYFS_GUARDED_BY(mutex_) = 0;
  SteadyTime since_ PLAYFS_GUARDED_BY(mutex_);  ///< of the current wait
};

EventStream::EventStream(Client& client, Executor& executor, const Clock& clock, Random& random, EventListener listener,
                         EventStreamOptions options)
    : core_(std::make_shared<Core>(client, executor, clock, random, std::move(listener), options)) {}

EventStream::~EventStream() { core_->close(); }

void EventStream::begin() { core_->begin(); }

void EventStream::recovered() { core_->recovered(); }

EventStream::State EventStream::state() const { return core_->state(); }

}  // namespace playfs::remote
