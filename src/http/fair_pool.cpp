#include "http/fair_pool.h"

#include <ctime>
#include <optional>
#include <utility>

namespace playfs::http {

namespace {
/// CPU time of this thread: the cost of a job must not depend on what else is running.
std::chrono::nanoseconds time_on_processor() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}
}  // namespace

FairPool::FairPool(unsigned threads, std::size_t most_waiting, unsigned light_threads, std::chrono::nanoseconds light)
    : queue_(most_waiting, light) {
  for (unsigned i = 0; i < threads + light_threads; ++i)
    threads_.emplace_back([this, light_only = i >= threads] { work(light_only); });
}

FairPool::~FairPool() { join(); }

void FairPool::offer(const std::string& client, Job job) {
  std::optional<Job> refused;
  {
    MutexLock lock(mutex_);
    refused = queue_.add(client, std::move(job));
    wake();
  }
  if (refused) (*refused)(false);
}

void FairPool::go_on(const std::string& client, Job job) {
  MutexLock lock(mutex_);
  queue_.go_on(client, std::move(job));
  wake();
}

/// Waking a thread costs as much as a short job, so one for light clients is left asleep if the others suffice.
void FairPool::wake() {
  changed_.notify_one();
  if (queue_.size() > idle_) light_changed_.notify_one();
}

void FairPool::work(bool light_only) {
  for (;;) {
    std::optional<FairQueue<Job>::Turn> turn;
    {
      MutexLock lock(mutex_);
      while (!(turn = light_only ? queue_.next_light() : queue_.next())) {
        if (ending_) return;
        if (light_only) {
          light_changed_.wait(mutex_);
        } else {
          ++idle_;
          changed_.wait(mutex_);
          --idle_;
        }
      }
    }
    const auto begun = time_on_processor();
    turn->job(true);
    turn->job = nullptr;
    const auto cost = time_on_processor() - begun;
    MutexLock lock(mutex_);
    queue_.note_cost(turn->client, cost);
  }
}

std::size_t FairPool::waiting() {
  MutexLock lock(mutex_);
  return queue_.size();
}

void FairPool::join() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  light_changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace playfs::http
