#include "base/cancel.h"

#include "base/mutex.h"

namespace playfs {

struct CancelState {
  Mutex mutex;
  bool cancelled PLAYFS_GUARDED_BY(mutex) = false;
  std::uint64_t next_id PLAYFS_GUARDED_BY(mutex) = 1;
  std::map<std::uint64_t, Task> hooks PLAYFS_GUARDED_BY(mutex);
};

bool CancelToken::cancelled() const {
  if (!state_) return false;
  MutexLock lock(state_->mutex);
  return state_->cancelled;
}

CancelToken::Registration CancelToken::on_cancel(Task hook) const {
  Registration registration;
  if (!state_) return registration;
  {
    MutexLock lock(state_->mutex);
    if (!state_->cancelled) {
      registration.state_ = state_;
      registration.id_ = state_->next_id++;
      state_->hooks.emplace(registration.id_, std::move(hook));
      return registration;
    }
  }
  hook();
  return registration;
}

CancelToken::Registration::Registration(Registration&& other) noexcept
    : state_(std::move(other.state_)), id_(std::exchange(other.id_, 0)) {}

CancelToken::Registration& CancelToken::Registration::operator=(Registration&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(id_, other.id_);
  return *this;
}

CancelToken::Registration::~Registration() {
  if (!state_) return;
  Task dropped;  // destroyed after the lock is released: its destructor may run arbitrary code
  MutexLock lock(state_->mutex);
  if (auto found = state_->hooks.find(id_); found != state_->hooks.end()) {
    dropped = std::move(found->second);
    state_->hooks.erase(found);
  }
}

CancelSource::CancelSource() : state_(std::make_shared<CancelState>()) {}

void CancelSource::cancel() {
  std::map<std::uint64_t, Task> hooks;
  {
    MutexLock lock(state_->mutex);
    if (std::exchange(state_->cancelled, true)) return;
    hooks.swap(state_->hooks);
  }
  for (auto& [id, hook] : hooks) hook();
}

}  // namespace playfs
