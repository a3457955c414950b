#include "sim/world.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace playfs::sim {

namespace {

constexpr std::size_t kStackSize = 512 * 1024;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Stacks are used again by the next run.
std::vector<void*>& spare_stacks() {
  static std::vector<void*> stacks;
  return stacks;
}

void* take_stack() {
  auto& spare = spare_stacks();
  if (!spare.empty()) {
    void* stack = spare.back();
    spare.pop_back();
    return stack;
  }
  void* stack = mmap(nullptr, kStackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) std::abort();
  return stack;
}

}  // namespace

struct Fiber {
  std::function<void()> body;
  ucontext_t context{}, back{};
  void* stack = nullptr;
  bool has_ended = false, is_killed = false;
};

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

World::World(std::uint64_t seed) : random(seed) {}

World::~World() { end(); }

void World::end() {
  for (std::size_t i = 0; i < fibers_.size(); ++i) {
    if (fibers_[i]->has_ended) continue;
    fibers_[i]->is_killed = true;
    resume(fibers_[i].get());
  }
}

void World::at(nanoseconds delay, std::function<void()> event) {
  queue_.push({now_ + delay, events_++, std::make_shared<std::function<void()>>(std::move(event))});
}

bool World::run(std::size_t most_events) {
  for (; !queue_.empty() && most_events > 0; --most_events) {
    Event event = queue_.top();
    queue_.pop();
    now_ = event.at;
    (*event.run)();
  }
  return queue_.empty();
}

void World::enter(unsigned high, unsigned low) {
  auto* fiber = reinterpret_cast<Fiber*>((static_cast<std::uintptr_t>(high) << 32) | low);
  if (!fiber->is_killed) {
    try {
      fiber->body();
    } catch (const Killed&) {
    }
  }
  fiber->body = nullptr;
  fiber->has_ended = true;
}

void World::start(std::function<void()> body) {
  auto fiber = std::make_unique<Fiber>();
  fiber->body = std::move(body);
  fiber->stack = take_stack();
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = kStackSize;
  fiber->context.uc_link = &fiber->back;
  auto address = reinterpret_cast<std::uintptr_t>(fiber.get());
  makecontext(&fiber->context, reinterpret_cast<void (*)()>(&World::enter), 2, static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
  Fiber* started = fiber.get();
  fibers_.push_back(std::move(fiber));
  at(nanoseconds(0), [this, started] { resume(started); });
}

void World::resume(Fiber* fiber) {
  Fiber* before = std::exchange(running_, fiber);
  swapcontext(&fiber->back, &fiber->context);
  running_ = before;
  if (fiber->has_ended && fiber->stack) spare_stacks().push_back(std::exchange(fiber->stack, nullptr));
}

void World::Waiting::ready() {
  if (std::exchange(is_ready_, true) || !waits_) return;
  world_.at(nanoseconds(0), [world = &world_, fiber = fiber_] {
    if (!fiber->has_ended) world->resume(fiber);
  });
}

void World::Waiting::wait() {
  if (!is_ready_) {
    waits_ = true;
    swapcontext(&fiber_->context, &fiber_->back);
  }
  if (fiber_->is_killed) throw Killed();
}

void World::sleep(nanoseconds time) {
  auto waiting = std::make_shared<Waiting>(*this);
  at(time, [waiting] { waiting->ready(); });
  waiting->wait();
}

void SimulatedTransport::send(HttpRequest request, net::Deadline, CancelToken, Callback<HttpResponse> done) {
  auto& random = world_.random;
  auto latency = [&] { return nanoseconds(milliseconds(1 + random.below(80))); };
  struct Exchange {
    HttpRequest request;
    Callback<HttpResponse> done;
    bool is_answered = false;
    void answer(Result<HttpResponse> response) {
      if (std::exchange(is_answered, true)) return;
      done(std::move(response));
    }
  };
  auto exchange = std::make_shared<Exchange>();
  exchange->request = std::move(request);
  exchange->request.headers.set("Host", "simulated");
  exchange->done = std::move(done);
  carried_(exchange->request, nullptr);

  bool is_refused = random.chance(weather_.refuse);
  bool is_refused_before = is_refused && random.chance(0.5);  // else it was carried out, and the answer says 503
  bool loses_reply = random.chance(weather_.lose_reply);
  bool cuts = random.chance(weather_.cut_body);
  // Some linger in the network for longer than their sender waits for them.
  nanoseconds there = random.chance(weather_.linger) ? nanoseconds(seconds(random.below(300))) : latency();
  // What is under way arrives also where its sender is no more.
  auto arrive = [&world = world_, &service = service_, address = address_, carried = carried_, exchange, is_refused,
                 is_refused_before, loses_reply, cuts](nanoseconds back) {
    HttpResponse response;
    if (!is_refused_before) {
      response = service.handle(exchange->request, {address});
      carried(exchange->request, &response);
    }
    if (is_refused) response = {503, {}, R"({"error":"unavailable","code":"unavailable","message":"later"})"};
    if (cuts && !response.body.empty()) response.body.resize(world.random.below(response.body.size()));
    if (loses_reply) return;
    world.at(back, [exchange, response = std::move(response)] { exchange->answer(response); });
  };
  if (!random.chance(weather_.lose_request)) world_.at(there, [arrive, back = latency()] { arrive(back); });
  if (random.chance(weather_.duplicate))
    world_.at(there + nanoseconds(seconds(random.below(60))), [arrive, back = latency()] { arrive(back); });
  world_.at(seconds(60), [exchange] { exchange->answer(fail(ErrorCode::timed_out, "no answer came")); });
}

}  // namespace playfs::sim
