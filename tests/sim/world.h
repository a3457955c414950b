// Time, threads and network of a simulated run: one queue of events, and fibers that wait for them.
//
// A client is a fiber: code that waits like a thread, and of which only one runs at a time, in an order that the seed
// decides. Killing a client is an exception that its code does not catch. For one thread.
#pragma once

#include <ucontext.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "net/transport.h"
#include "service/service.h"

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

/// What a client that is killed throws where it stands.
struct Killed {};

class World {
 public:
  explicit World(std::uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void at(nanoseconds delay, std::function<void()> event);
  /// Runs events until there are none left; false where that takes too many.
  bool run(std::size_t most_events);

  /// Unwinds the fibers that still wait, where they stand: before what they use goes.
  void end();

  /// Starts a fiber. It ends when `body` returns or throws Killed.
  void start(std::function<void()> body);
  /// From inside a fiber: lets others run until `ready` is called. May throw Killed.
  class Waiting {
   public:
    explicit Waiting(World& world) : world_(world), fiber_(world.running_) {}
    void ready();
    /// Returns once ready() was called, perhaps before.
    void wait();

   private:
    World& world_;
    struct Fiber* fiber_;
    bool is_ready_ = false, waits_ = false;
  };
  void sleep(nanoseconds time);

  [[nodiscard]] nanoseconds now() const { return now_; }
  SeededRandom random;

 private:
  friend class Waiting;
  void resume(Fiber* fiber);
  static void enter(unsigned high, unsigned low);

  struct Event {
    nanoseconds at;
    std::uint64_t number;
    std::shared_ptr<std::function<void()>> run;
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
  };
  nanoseconds now_{std::chrono::hours(1)};
  std::uint64_t events_ = 0;
  std::priority_queue<Event> queue_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* running_ = nullptr;
};

/// The world's time, seen by somebody whose calendar is off.
class SimulatedClock final : public Clock {
 public:
  explicit SimulatedClock(const World& world, nanoseconds skew = {}) : world_(world), skew_(skew) {}
  [[nodiscard]] WallTime wall() const override { return {1'790'856'000'000'000'000 + (world_.now() + skew_).count()}; }
  [[nodiscard]] SteadyTime steady() const override { return SteadyTime(world_.now()); }

 private:
  const World& world_;
  const nanoseconds skew_;
};

/// Tasks are events; after end() they are dropped.
class SimulatedExecutor final : public Executor {
 public:
  explicit SimulatedExecutor(World& world) : world_(world) {}
  ~SimulatedExecutor() override { *alive_ = false; }
  void post(Task task) override { post_after(nanoseconds(0), std::move(task)); }
  void post_after(nanoseconds delay, Task task) override {
    auto shared = std::make_shared<Task>(std::move(task));
    world_.at(delay, [shared, alive = alive_] {
      if (*alive) (*shared)();
    });
  }

 private:
  World& world_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// How bad the network is. Probabilities are of one request.
struct Weather {
  double lose_request = 0, lose_reply = 0, duplicate = 0, linger = 0, refuse = 0, cut_body = 0;
};

/// The road from one client to the service: slow, and worse.
class SimulatedTransport final : public net::Transport {
 public:
  using Carried = std::function<void(const HttpRequest&, const HttpResponse*)>;

  /// `carried` is told of each request when it is sent, and with its response when the service has carried it out.
  SimulatedTransport(World& world, const service::Service& service, std::string address, Weather weather,
                     Carried carried)
      : world_(world),
        service_(service),
        address_(std::move(address)),
        weather_(weather),
        carried_(std::move(carried)) {}

  void send(HttpRequest request, net::Deadline deadline, CancelToken cancel, Callback<HttpResponse> done) override;
  [[nodiscard]] const std::string& origin() const override { return origin_; }

 private:
  World& world_;
  const service::Service& service_;
  const std::string address_, origin_ = "local://simulated";
  const Weather weather_;
  const Carried carried_;
};

}  // namespace playfs::sim
