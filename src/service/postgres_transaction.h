// Transactions on PostgreSQL, retried when they conflict with others. Thread-safe.
#pragma once

#include <chrono>
#include <vector>

#include "base/callback.h"
#include "base/result.h"
#include "service/postgres_connection.h"
#include "service/postgres_pool.h"

namespace playfs::service {

/// How long a write may take, with all attempts at it.
inline constexpr std::chrono::seconds kPostgresWriteLimit{8};

/// The first statements of each transaction. They make PostgreSQL end it if this process stops in the middle.
std::vector<PostgresStatement> begin_transaction();

/// A new value for a column of the site's row, or of a closed store NULL, which no column takes: the transaction fails,
/// whatever else it has done, with closed_for_writing().
#define PLAYFS_POSTGRES_UNLESS_CLOSED(value) "CASE WHEN closed = '' THEN " value " END"

/// Rewrites the row that every write needs, so that the transaction waits for it, reaches the disk, and fails if the
/// store is closed.
inline constexpr const char* kPostgresTouchSite = "UPDATE site SET id = " PLAYFS_POSTGRES_UNLESS_CLOSED("id");

/// Checks that a COMMIT did commit: in a failed transaction it rolls back.
Status check_committed(const PostgresRows& commit);

/// Runs statements that do not depend on each other's results as one transaction, in one round trip; returns the rows
/// of each. It may run twice: it is retried after a conflict, and after a lost connection, when it is unknown whether
/// it was committed.
Result<std::vector<PostgresRows>> commit_at_once(PostgresPool& pool, std::vector<PostgresStatement> statements,
                                                 PostgresDeadline deadline);

/// Runs `work` in a transaction and commits. Retries after a conflict, or if the connection is lost before the commit.
/// Other errors roll back, and so does a closed store: at the commit, since the row is locked last. If the connection
/// is lost during the commit, its outcome is unknown: fails with busy.
Status in_transaction(PostgresPool& pool, UniqueFunction<Status(PostgresConnection&, PostgresDeadline)> work);

/// The same for the tables themselves, also of a closed store, or before there is one.
Status in_schema_transaction(PostgresPool& pool, UniqueFunction<Status(PostgresConnection&, PostgresDeadline)> work);

}  // namespace playfs::service
