// Time and threads of a simulated run: one queue of events, and fibers in place of threads.
//
// The executable's own pthread calls lead here (threads.cpp), so that code which starts threads, takes mutexes and
// waits for conditions runs unchanged: each of its threads is a fiber, of which one runs at a time. Others come in
// where it waits and, by chance, where it takes a mutex: the places where a real machine may switch and somebody can
// tell. The seed decides which. For one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "whole/stacks.h"

namespace playfs::sim {

using std::chrono::nanoseconds;

/// SplitMix64: small, and good enough to choose schedules.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  void fill(std::span<std::byte> bytes) override;
  std::uint64_t number();
  /// Uniform below `limit`.
  std::uint64_t below(std::uint64_t limit) { return number() % limit; }
  bool chance(double probability) { return static_cast<double>(number() >> 11) * 0x1p-53 < probability; }

 private:
  std::uint64_t state_;
};

/// Whom a fiber works for; those that it starts, and the events that it asks for, work for the same.
class Owner {
 public:
  virtual ~Owner() = default;
  /// Another fiber could come in here, or the process be killed. Must not wait.
  virtual void instant() = 0;
  /// What a merge worked out is about to take its place in the work tree. May wait.
  virtual void replacing() = 0;
  /// It has done so, or tried to.
  virtual void replaced() = 0;
  /// Whether the disk cannot write what was put into a file that is synced now.
  virtual bool sync_fails() = 0;
};

struct Fiber;

class World {
 public:
  explicit World(std::uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// The one whose fiber is running; nullptr outside of fibers.
  static World* running();

  /// Runs `event` on a fiber.
  void at(nanoseconds delay, std::function<void()> event);
  /// The same for somebody else, or nobody.
  void at(nanoseconds delay, std::function<void()> event, std::shared_ptr<Owner> owner);
  /// Until `done`, or nothing is left to happen. False where that takes more than so many events.
  bool run(const std::function<bool()>& done, std::size_t most_events);

  // From a fiber.
  void sleep(nanoseconds time);
  /// The code that runs comes to a place where others may come in.
  void instant();
  /// A file is about to change: its process may be killed here, but nobody comes in, since SQLite may be at work, with
  /// locks that take all fibers for one thread.
  void moment();
  /// Nobody else comes in while one of these lives, except where the code has to wait.
  class Alone {
   public:
    explicit Alone(World& world) : world_(world) { ++world_.alone_; }
    ~Alone() { --world_.alone_; }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    World& world_;
  };

  // What threads.cpp needs.
  Fiber* start(std::function<void()> body);
  void join(Fiber* fiber);
  /// Until wake() of the same thing; false where the time is over before.
  bool wait_for(const void* thing, std::optional<nanoseconds> until = std::nullopt);
  void wake(const void* thing, bool all);
  [[nodiscard]] bool is_waited_for(const void* thing) const { return !waiting_.empty() && waiting_.contains(thing); }

  [[nodiscard]] nanoseconds now() const { return now_; }
  /// Whom the running fiber works for.
  [[nodiscard]] static std::shared_ptr<Owner> owner();
  [[nodiscard]] std::size_t events() const { return ran_; }
  /// For whoever looks at one schedule (--trace).
  template <class... Parts>
  void say(const Parts&... parts) const {
    if (!is_traced) return;
    std::ostringstream line;
    line << std::fixed << std::setprecision(3) << std::chrono::duration<double>(now_).count() - 3600 << " s: ";
    (line << ... << parts);
    std::cerr << line.str() << "\n";
  }
  bool is_traced = false;
  SeededRandom random;
  double switching = 0;  ///< how often others come in where they may

 private:
  void resume(Fiber* fiber);
  void block();
  void resume_at(nanoseconds delay, Fiber* fiber);
  Fiber* idle_fiber();
  static void enter(void* fiber);
  friend struct Fiber;

  struct Event {
    nanoseconds at;
    std::uint64_t number;
    Fiber* fiber;        ///< goes on...
    std::uint64_t wait;  ///< ...where it still waits for the same
    std::uint32_t task;  ///< or else one of tasks_
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
  };
  struct Job {
    std::function<void()> run;
    std::shared_ptr<Owner> owner;
  };
  struct Waiter {
    Fiber* fiber;
    bool is_woken;
  };
  nanoseconds now_{std::chrono::hours(1)};
  std::uint64_t numbers_ = 0;
  std::size_t ran_ = 0;
  int alone_ = 0;
  std::priority_queue<Event> queue_;
  std::vector<Job> tasks_;
  std::vector<std::uint32_t> free_tasks_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::unordered_map<const void*, std::deque<Waiter*>> waiting_;
};

/// The world's time, seen by somebody whose calendar is off.
class SimulatedClock final : public Clock {
 public:
  explicit SimulatedClock(const World& world, nanoseconds skew = {}) : world_(world), skew_(skew) {}
  [[nodiscard]] WallTime wall() const override { return {1'790'856'000'000'000'000 + (world_.now() + skew_).count()}; }
  [[nodiscard]] SteadyTime steady() const override { return SteadyTime(world_.now()); }
  void skew(nanoseconds by) { skew_ = by; }

 private:
  const World& world_;
  nanoseconds skew_;
};

/// How many use a thing whose end waits until nobody does.
class UseCount {
 public:
  void begin() { ++count_; }
  void end(World& world) {
    if (--count_ == 0) world.wake(this, true);
  }
  void wait(World& world) const {
    while (count_ > 0) world.wait_for(this);
  }

 private:
  int count_ = 0;
};

/// Tasks are events; after its end they are dropped. Its end waits for those that run.
class SimulatedExecutor final : public Executor {
 public:
  explicit SimulatedExecutor(World& world) : world_(world) {}
  ~SimulatedExecutor() override;
  SimulatedExecutor(const SimulatedExecutor&) = delete;
  SimulatedExecutor& operator=(const SimulatedExecutor&) = delete;
  void post(Task task) override { post_after(nanoseconds(0), std::move(task)); }
  void post_after(nanoseconds delay, Task task) override;

 private:
  World& world_;
  struct Shared {
    bool has_ended = false;
    UseCount running;
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace playfs::sim
