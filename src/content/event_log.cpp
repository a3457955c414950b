#include "content/event_log.h"

#include <chrono>
#include <deque>
#include <set>

#include "base/hints.h"
#include "base/mutex.h"
#include "base/text.h"
#include "wire/json.h"

namespace playfs::content {

namespace {

constexpr std::size_t kKeptBytes = 256 * 1024;
/// Refusals logged in each minute.
constexpr std::size_t kMostRefusals = 60;
constexpr std::chrono::minutes kRefusalsFor{1};

/// Lines, oldest first; the oldest are dropped above a size limit.
class Ring {
 public:
  void append(std::string line) {
    bytes_ += line.size();
    lines_.push_back(std::move(line));
    while (bytes_ > kKeptBytes && lines_.size() > 1) {
      bytes_ -= lines_.front().size();
      lines_.pop_front();
    }
  }
  [[nodiscard]] std::string text() const {
    std::string text;
    text.reserve(bytes_);
    for (const auto& line : lines_) text += line;
    return text;
  }

 private:
  std::deque<std::string> lines_;
  std::size_t bytes_ = 0;
};

}  // namespace

struct EventLog::State {
  explicit State(const Clock& time) : clock(time) {}

  const Clock& clock;
  Mutex mutex;
  Ring errors PLAYFS_GUARDED_BY(mutex);
  Ring events PLAYFS_GUARDED_BY(mutex);
  std::set<std::string> refusals PLAYFS_GUARDED_BY(mutex);  ///< of this minute
  SteadyTime refusals_since PLAYFS_GUARDED_BY(mutex){};
  std::vector<std::shared_ptr<const std::function<void()>>> listeners PLAYFS_GUARDED_BY(mutex);

  /// Whether it is to be logged.
  bool is_news(std::string refusal) {
    const SteadyTime now = clock.steady();
    MutexLock lock(mutex);
    if (refusals.empty() || now - refusals_since >= kRefusalsFor) {
      refusals.clear();
      refusals_since = now;
    }
    return refusals.size() < kMostRefusals && refusals.insert(std::move(refusal)).second;
  }

  void append(Ring State::*ring, const JsonObject& line) {
    std::string text = escape_json_for_terminal(wire::to_text(line)) + "\n";
    decltype(listeners) called;
    {
      MutexLock lock(mutex);
      (this->*ring).append(std::move(text));
      called = listeners;
    }
    for (const auto& listener : called) (*listener)();
  }
};

EventLog::EventLog(const Clock& clock) : state_(std::make_unique<State>(clock)) {}
EventLog::~EventLog() = default;

void EventLog::error(const std::string& subject, const Error& error) {
  JsonObject line;
  line.append("time", format_iso8601(state_->clock.wall()));
  line.append("code", std::string(name_of(error.code)));
  line.append("message", error.message);
  line.append("subject", subject);
  line.append("hint", std::string(hint_of(error)));
  if (error.retry_after) line.append("retry_after_s", std::int64_t{error.retry_after->count()});
  state_->append(&State::errors, line);
}

void EventLog::refusal(const std::string& subject, const Error& refused) {
  if (state_->is_news(subject + '\n' + refused.message)) error(subject, refused);
}

void EventLog::event(const std::string& kind, JsonObject fields) {
  JsonObject line;
  line.append("time", format_iso8601(state_->clock.wall()));
  line.append("kind", kind);
  for (const auto& [name, value] : fields) line.set(name, value);
  state_->append(&State::events, line);
}

std::string EventLog::errors_text() const {
  MutexLock lock(state_->mutex);
  return state_->errors.text();
}

std::string EventLog::events_text() const {
  MutexLock lock(state_->mutex);
  return state_->events.text();
}

void EventLog::on_append(std::function<void()> listener) {
  MutexLock lock(state_->mutex);
  state_->listeners.push_back(std::make_shared<const std::function<void()>>(std::move(listener)));
}

}  // namespace playfs::content
