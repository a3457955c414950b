#include "whole/world.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace playfs::sim {

namespace {

using std::chrono::milliseconds;

World* running_world = nullptr;

}  // namespace

struct Fiber {
  World* world = nullptr;
  std::function<void()> body;
  std::shared_ptr<Owner> owner;
  Stack stack{&World::enter, this};
  std::uint64_t wait = 0;  ///< counts how often it resumed
  bool is_thread = false, has_ended = false;
};

namespace {

Fiber* running_fiber = nullptr;

/// The stack that resumes fibers.
Stack& scheduler() {
  static Stack stack;
  return stack;
}

/// Idle fibers that wait for a body, for the next run.
std::vector<std::unique_ptr<Fiber>>& spare_fibers() {
  static std::vector<std::unique_ptr<Fiber>> fibers;
  return fibers;
}

}  // namespace

void SeededRandom::fill(std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t value = number();
    std::memcpy(bytes.data() + i, &value, std::min<std::size_t>(8, bytes.size() - i));
  }
}

std::uint64_t SeededRandom::number() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

World* World::running() { return running_world; }
std::shared_ptr<Owner> World::owner() { return running_fiber ? running_fiber->owner : nullptr; }

World::World(std::uint64_t seed) : random(seed) {}

World::~World() {
  // A run that was cut short leaves waiting fibers behind: what is on their stacks is leaked.
  for (auto& fiber : fibers_)
    if (!fiber->body) spare_fibers().push_back(std::move(fiber));
}

void World::at(nanoseconds delay, std::function<void()> event) { at(delay, std::move(event), owner()); }

void World::at(nanoseconds delay, std::function<void()> event, std::shared_ptr<Owner> owner) {
  std::uint32_t task = 0;
  if (free_tasks_.empty()) {
    task = static_cast<std::uint32_t>(tasks_.size());
    tasks_.emplace_back();
  } else {
    task = free_tasks_.back();
    free_tasks_.pop_back();
  }
  tasks_[task] = {std::move(event), std::move(owner)};
  queue_.push({now_ + delay, numbers_++, nullptr, 0, task});
}

void World::resume_at(nanoseconds delay, Fiber* fiber) {
  queue_.push({now_ + delay, numbers_++, fiber, fiber->wait, 0});
}

bool World::run(const std::function<bool()>& done, std::size_t most_events) {
  while (!done()) {
    if (queue_.empty()) return true;
    if (most_events-- == 0) return false;
    Event event = queue_.top();
    queue_.pop();
    now_ = std::max(now_, event.at);
    ++ran_;
    if (event.fiber) {
      if (event.fiber->wait == event.wait && event.fiber->body) resume(event.fiber);
      continue;
    }
    Job job = std::exchange(tasks_[event.task], {});
    free_tasks_.push_back(event.task);
    Fiber* fiber = idle_fiber();
    fiber->body = std::move(job.run);
    fiber->owner = std::move(job.owner);
    resume(fiber);
  }
  return true;
}

void World::enter(void* argument) {
  auto* fiber = static_cast<Fiber*>(argument);
  Stack::arrived_from(scheduler());
  for (;;) {
    fiber->body();
    fiber->body = nullptr;
    fiber->owner.reset();
    if (fiber->is_thread) {
      fiber->has_ended = true;
      fiber->world->wake(fiber, true);
    }
    fiber->stack.go_to(scheduler());
  }
}

Fiber* World::idle_fiber() {
  if (!idle_.empty()) {
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    return fiber;
  }
  auto& spare = spare_fibers();
  if (spare.empty()) spare.push_back(std::make_unique<Fiber>());
  Fiber* fiber = fibers_.emplace_back(std::move(spare.back())).get();
  spare.pop_back();
  fiber->world = this;
  fiber->is_thread = false;
  return fiber;
}

void World::resume(Fiber* fiber) {
  ++fiber->wait;
  running_fiber = fiber;
  running_world = this;
  scheduler().go_to(fiber->stack);
  running_fiber = nullptr;
  running_world = nullptr;
  if (!fiber->body && !fiber->is_thread) idle_.push_back(fiber);
}

void World::block() {
  Fiber* fiber = running_fiber;
  int alone = std::exchange(alone_, 0);
  fiber->stack.go_to(scheduler());
  alone_ = alone;
}

Fiber* World::start(std::function<void()> body) {
  Fiber* fiber = idle_fiber();
  fiber->body = std::move(body);
  fiber->owner = running_fiber ? running_fiber->owner : nullptr;
  fiber->is_thread = true;
  fiber->has_ended = false;
  resume_at(nanoseconds(0), fiber);
  return fiber;
}

void World::join(Fiber* fiber) {
  while (!fiber->has_ended) wait_for(fiber);
  fiber->is_thread = false;
  idle_.push_back(fiber);
}

bool World::wait_for(const void* thing, std::optional<nanoseconds> until) {
  Waiter waiter{running_fiber, false};
  waiting_[thing].push_back(&waiter);
  if (until) resume_at(std::max(*until - now_, nanoseconds(0)), running_fiber);
  block();
  if (waiter.is_woken) return true;
  auto& queue = waiting_[thing];
  std::erase(queue, &waiter);
  if (queue.empty()) waiting_.erase(thing);
  return false;
}

void World::wake(const void* thing, bool all) {
  auto found = waiting_.find(thing);
  if (found == waiting_.end()) return;
  do {
    Waiter* waiter = found->second.front();
    found->second.pop_front();
    waiter->is_woken = true;
    resume_at(nanoseconds(0), waiter->fiber);
  } while (all && !found->second.empty());
  if (found->second.empty()) waiting_.erase(found);
}

void World::sleep(nanoseconds time) {
  resume_at(time, running_fiber);
  block();
}

void World::moment() {
  if (alone_ > 0 || !running_fiber->owner) return;
  Alone alone(*this);
  running_fiber->owner->instant();
}

void World::instant() {
  if (alone_ > 0) return;
  moment();
  if (switching > 0 && random.chance(switching))
    sleep(random.chance(0.5) ? nanoseconds(0)
                             : nanoseconds(milliseconds(random.below(random.chance(0.1) ? 5000 : 100))));
}

SimulatedExecutor::~SimulatedExecutor() {
  shared_->has_ended = true;
  shared_->running.wait(world_);
}

void SimulatedExecutor::post_after(nanoseconds delay, Task task) {
  auto kept = std::make_shared<Task>(std::move(task));
  world_.at(delay, [kept = std::move(kept), shared = shared_, &world = world_]() mutable {
    if (shared->has_ended) return;
    shared->running.begin();
    (*kept)();
    kept.reset();
    shared->running.end(world);
  });
}

}  // namespace playfs::sim
