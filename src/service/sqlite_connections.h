// The connections to one database file: a reader for each reading thread, and one writer that commits in groups.
// Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/callback.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/sqlite.h"
#include "service/write_queue.h"

namespace playfs::service {

/// A connection with its statements, prepared on first use. For one thread at a time.
class Connection {
 public:
  explicit Connection(Database database) : database_(std::move(database)) {}
  Database& database() { return database_; }

  /// A statement in use. Reset at the end, since one left on a row keeps its snapshot, and so the WAL file, alive.
  class Use {
   public:
    explicit Use(Statement& statement) : statement_(&statement) {}
    Use(Use&& other) noexcept : statement_(std::exchange(other.statement_, nullptr)) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (statement_) statement_->reset();
    }
    Statement* operator->() { return statement_; }
    Statement& operator*() { return *statement_; }

   private:
    Statement* statement_;
  };

  /// REQUIRES: `sql` lives as long as the program, and no other Use of it is alive.
  Result<Use> use(std::string_view sql);

 private:
  Database database_;
  std::unordered_map<std::string_view, Statement> statements_;
};

class Connections {
 public:
  /// `path` must have its schema already: statements are prepared against it.
  static Result<std::unique_ptr<Connections>> open(const std::string& path, Database::Durability durability);

  /// Runs `write` in a transaction on the writing connection, and returns once it is committed. See WriteQueue.
  /// Errors: busy, if the store is closed.
  [[nodiscard]] Status write(UniqueFunction<Status(Connection&)> write);

  /// A connection for reading, returned when the loan ends.
  class Loan {
   public:
    Loan(Connections& owner, std::unique_ptr<Connection> connection)
        : owner_(&owner), connection_(std::move(connection)) {}
    Loan(Loan&&) noexcept = default;
    Loan& operator=(Loan&&) = delete;
    ~Loan();
    Connection* operator->() { return connection_.get(); }
    Connection& operator*() { return *connection_; }

   private:
    Connections* owner_;
    std::unique_ptr<Connection> connection_;
  };
  Result<Loan> read();

 private:
  Connections(std::string path, Database writer);

  const std::string path_;
  Connection writer_;  // only used in writes run by the queue
  WriteQueue queue_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Connection>> free_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::service
