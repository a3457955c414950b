#include "vfs/control/resumed_requests.h"

#include <algorithm>

#include "vfs/attempt_driver.h"
#include "vfs/control/request_sending.h"
#include "vfs/control/text_room.h"
#include "vfs/mount.h"
#include "vfs/once.h"

namespace playfs::vfs {
namespace {

/// Backoff between rounds while the service does not answer. What is written to the file begins a round at once.
constexpr std::chrono::seconds kFirstPause{2}, kLongestPause{120};
/// How long later requests of a file wait for one that gets no answer.
constexpr std::chrono::minutes kLongestTurn{10};

bool may_be_overtaken(SteadyTime since, SteadyTime now) { return now - since > kLongestTurn; }

Error waiting_for_their_writer(const std::vector<std::string>& unsent) {
  return {ErrorCode::interrupted,
          "texts that were written to this site and not sent wait for you: " + std::to_string(unsent.size()) +
              ", the first is " + unsent.front(),
          "send each, if it has not arrived, by writing it to its control file; then remove it. A name with .by-AGENT "
          "says who wrote it: send that in a mount with agent=AGENT"};
}

}  // namespace

void ResumedRequests::find() {
  // Each mount tells of them, until they are sent or removed.
  if (const auto unsent = unsent_texts(mount_.journal().unsent_directory()); !unsent.empty())
    mount_.site().events().error(".playfs/errors.ndjson", waiting_for_their_writer(unsent));
  auto left = mount_.journal().left_behind();
  for (const auto& [path, error] : left.drafts) mount_.site().events().error(path, error);
  for (const Error& error : left.unreadable) mount_.site().events().error(".playfs/errors.ndjson", error);
  for (JournalledRequest& each : left.requests) {
    auto request = std::make_shared<JournalledRequest>(std::move(each));
    push({request, 0, mount_.clock().steady(), false});
  }
  std::vector<std::string> paths;
  {
    MutexLock lock(mutex_);
    for (const auto& [path, line] : lines_) paths.push_back(path);
  }
  for (const std::string& path : paths) begin(path);
}

void ResumedRequests::add(const std::shared_ptr<JournalledRequest>& request, std::int64_t order, const Error& why) {
  push({request, order, mount_.clock().steady(), true});
  {
    MutexLock lock(mutex_);
    Line& line = lines_[request->path];
    // Else it failed because of those before it.
    if (line.waiting.size() == 1) line.why = why;
    if (line.waiting.size() == 1 && why.retry_after) line.not_before = mount_.clock().steady() + *why.retry_after;
    if (line.is_tried || line.waiting.size() > 1) return;  // its round, or its timer, comes
  }
  later(request->path, std::max(kFirstPause, why.retry_after.value_or(kFirstPause)));
}

void ResumedRequests::push(Waiting waiting) {
  MutexLock lock(mutex_);
  Line& line = lines_[waiting.request->path];
  if (line.waiting.empty()) line.pause = kFirstPause;
  line.waiting.push_back(std::move(waiting));
}

Fetch ResumedRequests::tried(const std::string& path) {
  return [this, path](const CancelToken& cancel, Callback<void> done) { wait(path, cancel, std::move(done)); };
}

void ResumedRequests::wait(const std::string& path, const CancelToken& cancel, Callback<void> done) {
  Once<void> once(std::move(done));
  auto registration = cancel.on_cancel([once] { once(fail(ErrorCode::interrupted, "interrupted while waiting")); });
  bool will_be_tried = false;
  {
    MutexLock lock(mutex_);
    auto line = lines_.find(path);
    const bool is_set = line != lines_.end() && mount_.clock().steady() < line->second.not_before;
    if (line != lines_.end() && (line->second.is_tried || !is_set)) {
      line->second.waiters.push_back({[once] { once({}); }, std::move(registration)});
      will_be_tried = true;
    }
  }
  if (will_be_tried) begin(path);
  else once({});
}

std::optional<Error> ResumedRequests::keeps_waiting(const std::string& path) const {
  MutexLock lock(mutex_);
  auto found = lines_.find(path);
  if (found == lines_.end()) return std::nullopt;
  const Line& line = found->second;
  const SteadyTime now = mount_.clock().steady();
  const bool is_in_the_way = std::any_of(line.waiting.begin(), line.waiting.end(),
                                         [&](const Waiting& each) { return !may_be_overtaken(each.since, now); });
  return is_in_the_way ? line.why : std::nullopt;
}

void ResumedRequests::begin(const std::string& path, std::optional<std::uint64_t> round) {
  {
    MutexLock lock(mutex_);
    auto line = lines_.find(path);
    if (line == lines_.end() || line->second.is_tried || (round && line->second.round != *round)) return;
    line->second.is_tried = true;
    line->second.at = 0;
    ++line->second.round;
  }
  mount_.disk().post(Gate::guard(mount_.gate(), [this, path] { next(path); }));
}

void ResumedRequests::later(const std::string& path, std::chrono::seconds pause) {
  std::uint64_t round = 0;
  {
    MutexLock lock(mutex_);
    auto line = lines_.find(path);
    if (line == lines_.end()) return;
    round = line->second.round;
  }
  mount_.later(pause, [this, path, round] { begin(path, round); });
}

void ResumedRequests::next(const std::string& path) {
  while (auto waiting = first(path)) {
    const Status may_be_sent = mount_.journal().may_be_sent(*waiting->request);
    const bool is_unfinished = mount_.journal().is_unfinished(*waiting->request);
    if (is_unfinished && may_be_sent) return attempt(path, *waiting);
    // Unless a writer repeated it and got the answer.
    if (is_unfinished) refused(*waiting, may_be_sent.error());
    remove(*waiting);
  }
  end_round(path);
}

std::optional<ResumedRequests::Waiting> ResumedRequests::first(const std::string& path) {
  MutexLock lock(mutex_);
  const Line& line = lines_[path];
  return line.at < line.waiting.size() ? std::optional(line.waiting[line.at]) : std::nullopt;
}

void ResumedRequests::attempt(const std::string& path, const Waiting& waiting) {
  auto op = std::make_shared<Operation>(Caller());
  op->note(kRecorded);  // by failed() and refused()
  drive<Sent>(
      mount_, Counted::write, std::move(op),
      as_attempt([&mount = mount_, request = waiting.request](const OperationPtr& by) {
        return send_again(mount, by, request);
      }),
      [path] { return path; },
      Reply<Sent>([this, path, waiting](Result<Sent> outcome) { answered(path, waiting, std::move(outcome)); }));
}

void ResumedRequests::answered(const std::string& path, const Waiting& waiting, Result<Sent> outcome) {
  if (!outcome && outcome.error().code == ErrorCode::interrupted) return;  // the next mount sends it again
  if (!outcome && is_undecided(outcome.error())) return failed(path, waiting, outcome.error());
  if (outcome) {
    JsonObject made{{"path", path}};
    for (const RequestStep& step : waiting.request->steps) made.append(step.collection, step.made);
    mount_.site().events().event("request_resumed", std::move(made));
    if (waiting.order != 0) mount_.set_last_result(path, waiting.order, shown_answer(mount_, *outcome));
    remove(waiting);
  }
  auto go_on = [this, path, waiting, outcome = std::move(outcome)] {
    if (!outcome) {
      refused(waiting, outcome.error().while_doing("send what was written here earlier"));
      remove(waiting);
    }
    next(path);
  };
  mount_.disk().post(Gate::guard(mount_.gate(), std::move(go_on)));
}

void ResumedRequests::failed(const std::string& path, const Waiting& waiting, const Error& why) {
  Error error = why;
  error.hint = kSentAgain;
  bool is_next_tried = false;
  {
    MutexLock lock(mutex_);
    Line& line = lines_[path];
    line.why = error;
    if (why.retry_after) line.not_before = mount_.clock().steady() + *why.retry_after;
    is_next_tried = line.at == 0 && line.waiting.size() > 1 && may_be_overtaken(waiting.since, mount_.clock().steady());
    if (is_next_tried) line.at = 1;
    for (Waiting& each : line.waiting)
      if (each.request == waiting.request) each.is_told = true;
  }
  if (!waiting.is_told)
    mount_.site().events().error(path, error.while_doing("send what was written before the last unmount"));
  if (!is_next_tried) return end_round(path);
  mount_.disk().post(Gate::guard(mount_.gate(), [this, path] { next(path); }));
}

void ResumedRequests::refused(const Waiting& waiting, const Error& why) {
  const Error error = mount_.journal().give_up(*waiting.request, why);
  mount_.site().events().error(waiting.request->path, error);
  if (waiting.order != 0) mount_.set_last_error(waiting.request->path, waiting.order, error);
}

void ResumedRequests::remove(const Waiting& waiting) {
  MutexLock lock(mutex_);
  Line& line = lines_[waiting.request->path];
  std::erase_if(line.waiting, [&](const Waiting& each) { return each.request == waiting.request; });
  line.pause = kFirstPause;
}

void ResumedRequests::end_round(const std::string& path) {
  std::list<Waiter> waiters;
  std::optional<std::chrono::seconds> pause;
  {
    MutexLock lock(mutex_);
    Line& line = lines_[path];
    line.is_tried = false;
    waiters.swap(line.waiters);
    const auto set = line.not_before - mount_.clock().steady();
    if (!line.waiting.empty()) pause = std::max(line.pause, std::chrono::ceil<std::chrono::seconds>(set));
    line.pause = std::min(line.pause * 2, kLongestPause);
    if (!pause) lines_.erase(path);
  }
  for (Waiter& waiter : waiters) waiter.answer();
  if (pause) later(path, *pause);
}

}  // namespace playfs::vfs
