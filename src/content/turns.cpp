#include "content/turns.h"

#include <utility>

#include "content/site_context.h"

namespace playfs::content {

namespace {
/// A page of history over HTTP/2. Together with chunk requests it leaves room on the transport's connections.
constexpr std::size_t kMostAtOnce = 256;
}  // namespace

void Turns::take(const std::string& account, Send send) {
  {
    MutexLock lock(state_->mutex);
    if (state_->closed) return;
    state_->accounts[account].waiting.push_back(std::move(send));
  }
  go_on(state_);
}

void Turns::close() {
  std::map<std::string, Account> dropped;  // destroyed after the lock is released
  MutexLock lock(state_->mutex);
  state_->closed = true;
  dropped.swap(state_->accounts);
}

void Turns::go_on(const std::shared_ptr<State>& state) {
  {
    MutexLock lock(state->mutex);
    // Thousands of turns may end immediately because nobody waits for them; they must not nest.
    if (std::exchange(state->going_on, true)) return;
  }
  while (auto next = Turns::next(*state)) next->send(turn_of(state, std::move(next->account)));
}

std::optional<Turns::Next> Turns::next(State& state) {
  MutexLock lock(state.mutex);
  state.going_on = false;
  if (state.closed) return std::nullopt;
  const std::size_t width = std::min(kMostAtOnce, state.client.width());
  auto at = state.accounts.upper_bound(state.last);
  for (std::size_t left = state.accounts.size(); left > 0; --left) {
    if (at == state.accounts.end()) at = state.accounts.begin();
    auto& [name, account] = *at++;
    if (account.waiting.empty() || account.under_way >= share_of(width, account.under_way, state.under_way)) continue;
    Next next{name, std::move(account.waiting.front())};
    account.waiting.pop_front();
    ++account.under_way;
    ++state.under_way;
    state.last = name;
    state.going_on = true;
    return next;
  }
  return std::nullopt;
}

Turns::Turn Turns::turn_of(const std::shared_ptr<State>& state, std::string account) {
  return {nullptr, [state, account = std::move(account)](const void*) {
            {
              MutexLock lock(state->mutex);
              if (state->closed) return;
              --state->under_way;
              auto found = state->accounts.find(account);
              if (--found->second.under_way == 0 && found->second.waiting.empty()) state->accounts.erase(found);
            }
            go_on(state);
          }};
}

}  // namespace playfs::content
