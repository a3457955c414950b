// One connection to a PostgreSQL server, in pipeline mode: several statements take one round trip. Every wait has an
// end. For one thread at a time.
//
// Statements have no names and leave nothing behind in the session, so each transaction may run on another connection
// of a pooler like PgBouncer.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "service/postgres_functions.h"
#include "service/postgres_values.h"

namespace playfs::service {

using PostgresDeadline = std::chrono::steady_clock::time_point;

/// The transaction conflicts with a concurrent one and can be retried: SQLSTATE 40001 or 40P01; or 23505, if the other
/// one has just inserted the same key.
bool is_conflict(const Error& error);
inline constexpr const char* kUniqueViolation = "23505";
inline constexpr const char* kUndefinedTable = "42P01";
/// Only closed stores give it (PLAYFS_POSTGRES_UNLESS_CLOSED).
inline constexpr const char* kNotNullViolation = "23502";

/// The connection is gone, so it is unknown how far the statements got. Includes a server that has become read-only,
/// as the former primary does after a failover.
bool is_lost(const Error& error);

class PostgresConnection {
 public:
  /// Errors: busy if there is no server at the moment; invalid_argument for what is not a connection URI.
  static Result<std::unique_ptr<PostgresConnection>> open(const std::string& uri);

  /// Sends the statements, and returns the rows of each. The first that fails ends the others; a transaction that they
  /// began stays open and failed. `remote_code` of an error is its SQLSTATE; empty: the connection is lost.
  /// Errors: busy and timed_out, which may be over soon; no_space; io.
  Result<std::vector<PostgresRows>> run(const std::vector<PostgresStatement>& statements, PostgresDeadline deadline);

  /// Ends a failed or unwanted transaction.
  [[nodiscard]] Status roll_back(PostgresDeadline deadline);

  /// Whether it is open, in no transaction, and as far as known still connected.
  [[nodiscard]] bool is_ready();

 private:
  struct Finish {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  explicit PostgresConnection(PGconn* connection) : connection_(connection) {}

  Status send(const std::vector<PostgresStatement>& statements);
  /// Waits until something arrives; what waits for sending is sent meanwhile.
  Status wait(PostgresDeadline deadline);
  Error lost(const std::string& what);
  Error error_of(const PGresult* result);

  const std::unique_ptr<PGconn, Finish> connection_;
  bool is_lost_ = false;
};

}  // namespace playfs::service
