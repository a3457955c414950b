#include "service/write_queue.h"

#include <utility>

namespace playfs::service {

Status WriteQueue::run(UniqueFunction<Status()> write) {
  Waiting self;
  self.write = std::move(write);

  std::deque<Waiting*> batch;
  {
    MutexLock lock(mutex_);
    queue_.push_back(&self);
    while (!self.done && (led_ || queue_.front() != &self)) self.changed.wait(mutex_);
    if (self.done) return std::move(self.result);
    led_ = true;
    batch.swap(queue_);
  }

  run_together(batch);

  MutexLock lock(mutex_);
  led_ = false;
  for (Waiting* waiting : batch) {
    waiting->done = true;
    if (waiting != &self) waiting->changed.notify_one();  // it lives at least until this lock is released
  }
  if (!queue_.empty()) queue_.front()->changed.notify_one();
  return std::move(self.result);
}

void WriteQueue::run_together(const std::deque<Waiting*>& batch) {
  if (auto committed = commit_all(batch); !committed) {
    for (Waiting* waiting : batch)
      if (waiting->result) waiting->result = committed;
  }
}

Status WriteQueue::commit_all(const std::deque<Waiting*>& batch) {
  PLAYFS_TRY(Transaction transaction, Transaction::begin(database_));
  for (Waiting* waiting : batch) {
    PLAYFS_CHECK(database_.execute("SAVEPOINT one"));
    waiting->result = waiting->write();
    if (!waiting->result) PLAYFS_CHECK(database_.execute("ROLLBACK TO one"));
    PLAYFS_CHECK(database_.execute("RELEASE one"));
  }
  return transaction.commit();
}

}  // namespace playfs::service
