// Time and threads of a simulated run: one queue of events, and fibers instead of threads.
//
// The executable's own pthread calls lead here (threads.cpp), so code that starts threads, takes mutexes and waits for
// conditions runs unchanged: each of its threads is a fiber, and one runs at a time. Switches happen where a fiber
// waits and, at random, where it takes a mutex: the places where a switch on a real machine is observable. The seed
// determines them. For one thread.
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

/// On whose behalf a fiber works. Fibers that it starts, and events that it schedules, inherit the owner.
class Owner {
 public:
  virtual ~Owner() = default;
  /// Another fiber could run here, or the process be killed. Must not wait.
  virtual void instant() = 0;
  /// The result of a merge is about to be put into the work tree. May wait.
  virtual void replacing() = 0;
  /// It was put there, or that failed.
  virtual void replaced() = 0;
  /// Whether the disk fails to write what was put into a file that is synced now.
  virtual bool sync_fails() = 0;
};

struct Fiber;

class World {
 public:
  explicit World(std::uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// The world whose fiber is running; nullptr outside of fibers.
  static World* running();

  /// Runs `event` on a fiber.
  void at(nanoseconds delay, std::function<void()> event);
  /// The same on behalf of another owner, or of none.
  void at(nanoseconds delay, std::function<void()> event, std::shared_ptr<Owner> owner);
  /// Runs until `done`, or until no events are left. False if that takes more than `most_events`.
  bool run(const std::function<bool()>& done, std::size_t most_events);

  // Call it from a fiber.
  void sleep(nanoseconds time);
  /// The running code is at a place where others may run.
  void instant();
  /// A file is about to change: its process may be killed here, but nothing else runs, since SQLite may be at work,
  /// with locks that take all fibers for one thread.
  void moment();
  /// While one of these lives, no other fiber runs, unless the code has to wait.
  class Alone {
   public:
    explicit Alone(World& world) : world_(world) { ++world_.alone_; }
    ~Alone() { --world_.alone_; }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    World& world_;
  };

  // For threads.cpp.
  Fiber* start(std::function<void()> body);
  void join(Fiber* fiber);
  /// Waits until wake() of the same `thing`; false if the time passes first.
  bool wait_for(const void* thing, std::optional<nanoseconds> until = std::nullopt);
  void wake(const void* thing, bool all);
  [[nodiscard]] bool is_waited_for(const void* thing) const { return !waiting_.empty() && waiting_.contains(thing); }

  [[nodiscard]] nanoseconds now() const { return now_; }
  /// On whose behalf the running fiber works.
  [[nodiscard]] static std::shared_ptr<Owner> owner();
  [[nodiscard]] std::size_t events() const { return ran_; }
  /// For inspecting one schedule (--trace).
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
  double switching = 0;  ///< probability of a switch where one is possible

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
    Fiber* fiber;        ///< resumes...
    std::uint64_t wait;  ///< ...if it still waits for the same thing
    std::uint32_t task;  ///< otherwise one of tasks_
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

/// The world's time, as seen by a client whose wall clock is off. Unlike ManualClock, many clients share one time, each
/// with a wall clock of its own.
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

/// Counts the users of a thing that must not end before they are done.
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

/// Tasks are events. Destruction drops those to come and waits for those that run.
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
