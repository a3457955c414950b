#include "content/patience.h"

#include <algorithm>
#include <utility>

namespace playfs::content {

namespace {
/// So long one question serves for all who would ask while nothing is answered: its connection may be what died.
constexpr std::chrono::seconds kNextProbe{10};
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
  if (state_->silent) {
    const auto now = state_->clock.steady();
    const bool is_asked = std::any_of(state_->asked.begin(), state_->asked.end(),
                                      [&](const auto& each) { return now - each.second.since < kNextProbe; });
    if (is_asked) return std::nullopt;
    return std::chrono::milliseconds(0);
  }
  auto found = state_->asked.find(what);
  if (found == state_->asked.end()) return kLongest;
  const auto waited = std::chrono::ceil<std::chrono::milliseconds>(state_->clock.steady() - found->second.since);
  if (waited >= kLongest) return std::nullopt;
  return kLongest - waited;
}

void Patience::ran_out(const std::string& what) {
  MutexLock lock(state_->mutex);
  if (state_->asked.contains(what)) state_->silent = true;
}

void Patience::answered() {
  MutexLock lock(state_->mutex);
  state_->silent = false;
}

}  // namespace playfs::content
