// A bounded number of connections to one database. Thread-safe.
//
// While no connection can be made, one thread at a time tries, twice a second. All others share the connections that
// there are, or fail at once if there are none. So a database outage costs callers no time, and the database is used
// again as soon as it is back.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "service/postgres_connection.h"

namespace playfs::service {

class PostgresPool {
 public:
  PostgresPool(std::string uri, std::size_t most) : uri_(std::move(uri)), most_(most) {}

  /// A connection, returned to the pool when the loan ends if it can be used again.
  class Loan {
   public:
    Loan(PostgresPool& owner, std::unique_ptr<PostgresConnection> connection)
        : owner_(&owner), connection_(std::move(connection)) {}
    Loan(Loan&&) noexcept = default;
    Loan& operator=(Loan&&) = delete;
    ~Loan() {
      if (connection_) owner_->give_back(std::move(connection_));
    }
    PostgresConnection* operator->() { return connection_.get(); }
    PostgresConnection& operator*() { return *connection_; }

   private:
    PostgresPool* owner_;
    std::unique_ptr<PostgresConnection> connection_;
  };

  /// Errors: busy, if all are in use until the deadline, or the database cannot be reached.
  Result<Loan> take(PostgresDeadline deadline);

  /// Runs one statement by itself. It may run twice: it is retried after a conflict or a lost connection.
  Result<PostgresRows> run(const PostgresStatement& statement);

 private:
  /// nullptr: there is room for another one, which is reserved for the caller to connect().
  Result<std::unique_ptr<PostgresConnection>> free_or_room(PostgresDeadline deadline);
  /// nullptr if that fails: failure_ says why.
  std::unique_ptr<PostgresConnection> connect();
  void give_back(std::unique_ptr<PostgresConnection> connection);

  const std::string uri_;
  const std::size_t most_;
  Mutex mutex_;
  Condition returned_;
  std::vector<std::unique_ptr<PostgresConnection>> free_ PLAYFS_GUARDED_BY(mutex_);
  std::size_t open_ PLAYFS_GUARDED_BY(mutex_) = 0;          ///< including those that are being made
  std::optional<Error> failure_ PLAYFS_GUARDED_BY(mutex_);  ///< of the last attempt to connect
  bool is_trying_ PLAYFS_GUARDED_BY(mutex_) = false;        ///< after a failure
  PostgresDeadline try_again_ PLAYFS_GUARDED_BY(mutex_);
};

/// Backoff between attempts at a transaction that conflicts with others.
class Retries {
 public:
  explicit Retries(PostgresDeadline deadline) : deadline_(deadline) {}
  /// Whether to retry the transaction after this error. If so, sleeps first.
  bool again(const Error& error);

 private:
  const PostgresDeadline deadline_;
  int attempts_ = 0;
};

}  // namespace playfs::service
