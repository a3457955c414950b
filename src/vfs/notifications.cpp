#include "vfs/notifications.h"

#include <algorithm>
#include <utility>

namespace playfs::vfs {

namespace {
/// An invalidation that blocks in the kernel after all occupies one of these.
constexpr unsigned kThreads = 4;
/// How long to expect a lookup that was answered ESTALE to come back: the kernel retries at once.
constexpr std::chrono::seconds kComesBack{1};
/// How long names wait for the directory. Revalidating all names of the mount is for directories that are held longer:
/// it also undoes what is mounted below this mount, and overlays of it.
constexpr std::chrono::seconds kNamesWait{1};
}  // namespace

struct Notifications::Delivery {
  Delivery() = default;
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;
  ~Delivery() {
    for (Task& task : tasks) task();
  }
  std::vector<Task> tasks;
};

Notifications::~Notifications() {
  std::vector<std::thread> ending;
  {
    MutexLock lock(mutex_);
    ending_ = true;
    ending.swap(threads_);
    changed_.notify_all();
  }
  for (auto& thread : ending) thread.join();
}

void Notifications::start() {
  MutexLock lock(mutex_);
  start_threads();
}

void Notifications::start_threads() {
  while (!ending_ && threads_.size() < kThreads) threads_.emplace_back([this] { run(); });
}

void Notifications::set_receiver(KernelNotifier* receiver) {
  MutexLock lock(mutex_);
  receiver_ = receiver;
  if (!receiver) {
    for (auto& [node, queue] : queues_) make_ready(node, queue);  // no receiver is left to block
  }
  while (telling_ > 0) changed_.wait(mutex_);
}

void Notifications::entry_changed(NodeId parent, std::string name, const std::string& whose) {
  push(parent, {Kind::entry, std::move(name), 0, {}, nullptr}, whose);
}

void Notifications::node_changed(NodeId node, std::int64_t offset, const std::string& whose) {
  push(node, {offset < 0 ? Kind::attributes : Kind::pages, {}, offset, {}, nullptr}, whose);
}

void Notifications::then(NodeId node, Task task) { push(node, {Kind::task, {}, 0, std::move(task), nullptr}, {}); }

void Notifications::when_told(const std::string& whose, Task task) {
  auto now = std::make_shared<Delivery>();  // declared before the lock: the last reference runs the tasks
  std::shared_ptr<Delivery> delivery;
  MutexLock lock(mutex_);
  if (auto found = deliveries_.find(whose); found != deliveries_.end()) delivery = found->second.lock();
  (delivery ? delivery : now)->tasks.push_back(std::move(task));
}

void Notifications::push(NodeId node, Item item, const std::string& whose) {
  Item dropped;
  MutexLock lock(mutex_);
  if (ending_) {
    dropped = std::move(item);
    return;
  }
  if (!whose.empty()) {
    auto& known = deliveries_[whose];
    item.delivery = known.lock();
    if (!item.delivery) known = item.delivery = std::make_shared<Delivery>();
  }
  Queue& queue = queues_[node];
  queue.items.push_back(std::move(item));
  make_ready(node, queue);
}

void Notifications::make_ready(NodeId node, Queue& queue) {
  if (queue.is_ready || queue.is_telling || queue.items.empty()) return;
  queue.is_ready = true;
  ready_.push_back(node);
  start_threads();
  changed_.notify_all();
}

bool Notifications::would_block(NodeId node, const Queue& queue, Kind kind) const {
  if (!receiver_) return false;
  if (kind == Kind::pages) return queue.pages_held > 0;
  if (kind != Kind::entry) return false;
  auto first = yielded_.lower_bound({node, 0});
  return queue.names_held > 0 || (first != yielded_.end() && first->first.first == node);
}

void Notifications::drop_if_idle(NodeId node) {
  auto found = queues_.find(node);
  if (found == queues_.end()) return;
  const Queue& queue = found->second;
  if (!queue.items.empty() || queue.is_telling || queue.names_held > 0 || queue.pages_held > 0) return;
  queues_.erase(found);
  names_wait_.erase(node);
}

void Notifications::wake_names_that_waited() {
  const auto now = SteadyClock::now();
  for (const auto& [node, since] : names_wait_) {
    if (since + kNamesWait > now) continue;
    if (auto queue = queues_.find(node); queue != queues_.end()) make_ready(node, queue->second);
  }
}

void Notifications::forget_yielded() {
  const auto now = SteadyClock::now();
  for (auto each = yielded_.begin(); each != yielded_.end();) {
    if (each->second + kComesBack > now) {
      ++each;
      continue;
    }
    const NodeId node = each->first.first;
    each = yielded_.erase(each);
    if (auto queue = queues_.find(node); queue != queues_.end()) make_ready(node, queue->second);
  }
}

std::optional<Notifications::Job> Notifications::next() {
  MutexLock lock(mutex_);
  for (;;) {
    if (ending_) return std::nullopt;
    if (!yielded_.empty()) forget_yielded();
    if (!names_wait_.empty()) wake_names_that_waited();
    if (ready_.empty()) {
      if (yielded_.empty() && names_wait_.empty()) changed_.wait(mutex_);
      else changed_.wait_for(mutex_, std::min(kComesBack, kNamesWait));
      continue;
    }
    const NodeId node = ready_.front();
    ready_.pop_front();
    Queue& queue = queues_[node];
    queue.is_ready = false;
    Job job{node, {}, false, receiver_};
    const Kind kind = queue.items.front().kind;
    const bool would_wait = would_block(node, queue, kind);
    if (would_wait && kind == Kind::entry && knows_all_names_)
      job.by_all_names =
          names_wait_.try_emplace(node, SteadyClock::now()).first->second + kNamesWait <= SteadyClock::now();
    if (would_wait && !job.by_all_names) continue;   // releasing the node makes it ready again
    if (!job.by_all_names) names_wait_.erase(node);  // else the names behind it need not wait again
    queue.takes_names = kind == Kind::entry && receiver_ && !job.by_all_names;
    job.item = std::move(queue.items.front());
    queue.items.pop_front();
    queue.is_telling = true;
    ++telling_;
    return job;
  }
}

bool Notifications::deliver(Job& job) {
  if (job.item.kind == Kind::task) {
    job.item.task();
  } else if (job.receiver) {
    if (job.by_all_names) return job.receiver->all_names_changed();
    if (job.item.kind == Kind::entry) job.receiver->entry_changed(job.node, job.item.name);
    else job.receiver->node_changed(job.node, job.item.offset);
  }
  return true;
}

void Notifications::end(Job job, bool delivered) {
  MutexLock lock(mutex_);
  Queue& queue = queues_[job.node];
  queue.is_telling = queue.takes_names = false;
  if (!delivered) {
    knows_all_names_ = false;
    names_wait_.clear();  // for their directories
    queue.items.push_front(std::move(job.item));
  }
  make_ready(job.node, queue);
  drop_if_idle(job.node);
  --telling_;
  changed_.notify_all();
}

void Notifications::run() {
  while (auto job = next()) {
    const bool delivered = deliver(*job);
    Job done = std::move(*job);
    // Outlives the lock in end(): dropping the last reference runs tasks.
    std::shared_ptr<Delivery> delivery = done.item.delivery;
    end(std::move(done), delivered);
  }
}

std::optional<Notifications::Hold> Notifications::hold(const Locked& what, std::optional<pid_t> yields) {
  MutexLock lock(mutex_);
  for (NodeId node : what.nodes) {
    if (!yields || yielded_.contains({node, *yields})) continue;
    auto queue = queues_.find(node);
    if (queue == queues_.end() || !queue->second.takes_names) continue;
    yielded_[{node, *yields}] = SteadyClock::now();
    return std::nullopt;
  }
  for (NodeId node : what.nodes) {
    Queue& queue = queues_[node];
    if (what.names) ++queue.names_held;
    if (what.pages) ++queue.pages_held;
    if (yields) yielded_.erase({node, *yields});
  }
  return Hold(*this, what);
}

void Notifications::release(const Locked& what) {
  MutexLock lock(mutex_);
  for (NodeId node : what.nodes) {
    Queue& queue = queues_[node];
    if (what.names && --queue.names_held == 0) names_wait_.erase(node);
    if (what.pages) --queue.pages_held;
    make_ready(node, queue);
    drop_if_idle(node);
  }
}

}  // namespace playfs::vfs
