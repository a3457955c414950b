// Heads that are in use: polled, or requested when an event reports a change.
#include <algorithm>
#include <utility>

#include "content/heads.h"

namespace playfs::content {

bool Heads::is_current(const ProjectId& id) {
  MutexLock lock(mutex_);
  auto* found = projects_.find(id);
  if (!found || !(*found)->head) return false;
  const Project& state = **found;
  if (state.head->shown && !state.head->is_settled()) return false;
  return is_told(state) || context_.clock.steady() - state.head->fetched_at < context_.options.refresh ||
         (state.polled && state.head->fetched_at >= state.polled_since && !is_followed_by_events(state));
}

bool Heads::is_told(const ProjectId& id) {
  MutexLock lock(mutex_);
  auto* found = projects_.find(id);
  return found && is_told(**found);
}

void Heads::follow(const ProjectId& id) {
  std::chrono::nanoseconds delay{0};
  {
    MutexLock lock(mutex_);
    auto& state = *state_of(id);
    state.touched = context_.clock.steady();
    if (std::exchange(state.polled, true)) return;
    followed_.insert(id);
    state.polled_since = state.touched;
    if (state.head) delay = state.head->fetched_at + context_.options.refresh - state.touched;
  }
  poll_after(id, delay);
}

std::set<ProjectId> Heads::followed() {
  MutexLock lock(mutex_);
  return followed_;
}

void Heads::heard(const ProjectId& id) {
  MutexLock lock(mutex_);
  if (auto* found = projects_.find(id)) (*found)->heard = ++last_ticket_;
}

void Heads::bring_up(const ProjectId& id) {
  {
    MutexLock lock(mutex_);
    auto* found = projects_.find(id);
    if (!found || !(*found)->polled || is_followed_by_events(**found)) return;
    if (std::exchange((*found)->is_brought_up, true)) return;
  }
  refresh(id, {}, context_.guarded([this, id](const Result<Head>& head) {
    {
      MutexLock lock(mutex_);
      state_of(id)->is_brought_up = false;
    }
    // Events may have come meanwhile. Without any, or without the service, polling goes on.
    if (head && context_.live.period() != 0) bring_up(id);
  }));
}

void Heads::poll_after(const ProjectId& id, std::chrono::nanoseconds delay) {
  context_.executor.post_after(std::max(delay, std::chrono::nanoseconds(0)),
                               context_.guarded([this, id] { poll(id); }));
}

void Heads::poll(const ProjectId& id) {
  std::chrono::nanoseconds rest{0};
  {
    MutexLock lock(mutex_);
    auto* found = projects_.find(id);
    if (!found) {
      followed_.erase(id);
      return;
    }
    auto& state = **found;
    const SteadyTime now = context_.clock.steady();
    if (now - state.touched >= context_.options.in_use) {
      state.polled = false;
      followed_.erase(id);
      return;
    }
    // Another caller may have asked in the meantime.
    if (state.head) rest = state.head->fetched_at + context_.options.refresh - now;
    // Whoever uses it checks it now and then.
    if (is_followed_by_events(state)) rest = context_.options.refresh;
  }
  // While the service is silent, one request serves for all followed projects.
  if (rest <= std::chrono::nanoseconds(0) && !context_.patience.left_for(question_of(id)))
    rest = context_.options.refresh;
  if (rest > std::chrono::nanoseconds(0)) return poll_after(id, rest);
  // Counts from the response, so that a slow service is not asked by many at once.
  get(id, {}, context_.guarded([this, id](const Result<Head>&) { poll_after(id, context_.options.refresh); }));
}

}  // namespace playfs::content
