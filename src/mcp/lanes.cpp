#include "mcp/lanes.h"

#include <algorithm>

namespace playfs::mcp {

Lanes::Lanes(unsigned count, Limits limits) : limits_(limits), lanes_(count) {
  for (unsigned i = 0; i < count; ++i) threads_.emplace_back([this, i] { work(i); });
}

Lanes::~Lanes() {
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool Lanes::add(unsigned lane, std::optional<unsigned> after, std::size_t size, Task run) {
  MutexLock lock(mutex_);
  Lane& chosen = lanes_[lane];
  if (chosen.waiting.size() >= limits_.tasks || (bytes_ > 0 && bytes_ + size > limits_.bytes)) return false;
  Waiting waiting{std::move(run), size, lane, 0};
  if (after) waiting.after = *after, waiting.until = lanes_[*after].added;
  chosen.waiting.push_back(std::move(waiting));
  ++chosen.added;
  bytes_ += size;
  changed_.notify_all();
  return true;
}

bool Lanes::is_idle() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.done == lane.added; });
}

bool Lanes::wait_until_idle(std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  MutexLock lock(mutex_);
  while (!is_idle()) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    changed_.wait_for(mutex_, left);
  }
  return true;
}

std::optional<Task> Lanes::next(unsigned index) {
  MutexLock lock(mutex_);
  Lane& own = lanes_[index];
  auto is_ready = [&]() PLAYFS_REQUIRES(mutex_) {
    return !own.waiting.empty() && lanes_[own.waiting.front().after].done >= own.waiting.front().until;
  };
  while (!is_ending_ && !is_ready()) changed_.wait(mutex_);
  if (is_ending_) return std::nullopt;
  Waiting taken = std::move(own.waiting.front());
  own.waiting.pop_front();
  bytes_ -= taken.size;
  return std::move(taken.run);
}

void Lanes::work(unsigned index) {
  while (auto task = next(index)) {
    (*task)();
    task.reset();
    MutexLock lock(mutex_);
    ++lanes_[index].done;
    changed_.notify_all();
  }
}

}  // namespace playfs::mcp
