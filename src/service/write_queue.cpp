#include "service/write_queue.h"

#include <utility>

namespace playfs::service {

Status WriteQueue::run(UniqueFunction<Status()> write) {
  Write self{std::move(write), {}};
  queue_.run(self);
  return std::move(self.result);
}

void WriteQueue::run_together(const Batch& batch) {
  if (auto committed = commit_all(batch); !committed) {
    for (Write* write : batch)
      if (write->result) write->result = committed;
  }
}

Status WriteQueue::commit_all(const Batch& batch) {
  PLAYFS_TRY(Transaction transaction, Transaction::begin(database_));
  for (Write* write : batch) {
    PLAYFS_CHECK(database_.execute("SAVEPOINT one"));
    write->result = write->run();
    if (!write->result) PLAYFS_CHECK(database_.execute("ROLLBACK TO one"));
    PLAYFS_CHECK(database_.execute("RELEASE one"));
  }
  return transaction.commit();
}

}  // namespace playfs::service
