#include "content/patience.h"

#include <algorithm>
#include <utility>

namespace playfs::content {

namespace {
/// How long one request serves for all callers while the service is silent: after that its connection may be dead.
constexpr std::chrono::seconds kNextProbe{10};
/// How often, during silence, a caller may wait for an item that has not timed out yet.
constexpr std::chrono::seconds kNextTry{2};
/// How many items must time out before the whole service counts as silent: one or two may have problems of their own.
constexpr std::size_t kSilence = 3;
constexpr std::size_t kMostSilent = 4096;
}  // namespace

Patience::Question Patience::ask(std::string what) {
  {
    MutexLock lock(state_->mutex);
    auto& asked = state_->asked[what];
    if (asked.questions++ == 0) asked.since = state_->clock.steady();
  }
  return {nullptr, [state = state_, what = std::move(what)](const void*) {
            MutexLock lock(state->mutex);
            auto found = state->asked.find(what);
            if (--found->second.questions == 0) state->asked.erase(found);
          }};
}

std::optional<std::chrono::milliseconds> Patience::left_for(const std::string& what) const {
  MutexLock lock(state_->mutex);
  const auto now = state_->clock.steady();
  auto is_asked = [&](const auto& each) { return now - each.second.since < kNextProbe; };
  if (state_->silent.contains(what)) {
    auto own = state_->asked.find(what);
    const bool served = state_->silent.size() < kSilence
                            ? own != state_->asked.end() && is_asked(*own)
                            : std::any_of(state_->asked.begin(), state_->asked.end(), is_asked);
    if (served) return std::nullopt;
    return std::chrono::milliseconds(0);
  }
  if (state_->silent.size() >= kSilence) {
    if (now < state_->tried_at + kNextTry) return std::nullopt;
    state_->tried_at = now;
  }
  auto found = state_->asked.find(what);
  if (found == state_->asked.end()) return kLongest;
  const auto waited = std::chrono::ceil<std::chrono::milliseconds>(now - found->second.since);
  if (waited >= kLongest) return std::nullopt;
  return kLongest - waited;
}

void Patience::ran_out(const std::string& what) {
  MutexLock lock(state_->mutex);
  if (state_->asked.contains(what) && state_->silent.size() < kMostSilent) state_->silent.insert(what);
}

void Patience::answered() {
  MutexLock lock(state_->mutex);
  state_->silent.clear();
  state_->answered_at = state_->clock.steady();
}

SteadyTime Patience::answered_at() const {
  MutexLock lock(state_->mutex);
  return state_->answered_at;
}

}  // namespace playfs::content
