#include "service/postgres_transaction.h"

#include <iterator>
#include <string>
#include <tuple>
#include <utility>

namespace playfs::service {

std::vector<PostgresStatement> begin_transaction() {
  // The lock timeout exceeds the idle timeout, so that waiters outlast a playfs server that stopped while it held the
  // lock. All of them are shorter than the client's own deadline, and none interrupts a commit.
  return {{"BEGIN"},
          {"SELECT set_config('idle_in_transaction_session_timeout', '2000', true),"
           " set_config('lock_timeout', '4000', true), set_config('statement_timeout', '6000', true)"}};
}

Status check_committed(const PostgresRows& commit) {
  if (commit.tag() == "COMMIT") return {};
  return fail(ErrorCode::internal, "a transaction ended with " + std::string(commit.tag()));
}

Result<std::vector<PostgresRows>> commit_at_once(PostgresPool& pool, std::vector<PostgresStatement> statements,
                                                 PostgresDeadline deadline) {
  auto begin = begin_transaction();
  const auto before = static_cast<std::ptrdiff_t>(begin.size());
  statements.insert(statements.begin(), std::make_move_iterator(begin.begin()), std::make_move_iterator(begin.end()));
  statements.push_back({"COMMIT"});
  Retries retries(deadline);
  for (bool was_lost = false;;) {
    PLAYFS_TRY(auto connection, pool.take(deadline));
    auto rows = connection->run(statements, deadline);
    if (rows) {
      PLAYFS_CHECK(check_committed(rows->back()));
      rows->pop_back();
      rows->erase(rows->begin(), rows->begin() + before);
      return rows;
    }
    const Error& error = rows.error();
    // If this fails too, the connection is closed, and the server rolls back by itself.
    if (!is_lost(error)) std::ignore = connection->roll_back(deadline);
    const bool is_in_time = std::chrono::steady_clock::now() < deadline;
    const bool may_be_lost_once = is_lost(error) && is_in_time && !std::exchange(was_lost, true);
    if (!may_be_lost_once && !retries.again(error)) return rows;
  }
}

namespace {

using TransactionWork = UniqueFunction<Status(PostgresConnection&, PostgresDeadline)>;

/// `commit` is sent at once, and ends with COMMIT.
Status run_transaction(PostgresPool& pool, TransactionWork& work, const std::vector<PostgresStatement>& commit) {
  const auto deadline = std::chrono::steady_clock::now() + kPostgresWriteLimit;
  Retries retries(deadline);
  for (bool was_lost = false;;) {
    PLAYFS_TRY(auto connection, pool.take(deadline));
    Status done;
    if (auto begun = connection->run(begin_transaction(), deadline); !begun) done = fail(std::move(begun).error());
    if (done) done = work(*connection, deadline);
    const bool may_be_lost_once = !done && is_lost(done.error()) && !std::exchange(was_lost, true);
    if (done) {
      auto committed = connection->run(commit, deadline);
      if (committed) return check_committed(committed->back());
      done = fail(std::move(committed).error());
    }
    // If this fails too, the connection is closed, and the server rolls back by itself.
    if (!is_lost(done.error())) std::ignore = connection->roll_back(deadline);
    if (!may_be_lost_once && !retries.again(done.error())) return done;
  }
}

}  // namespace

Status in_transaction(PostgresPool& pool, TransactionWork work) {
  return run_transaction(pool, work, {{kPostgresTouchSite}, {"COMMIT"}});
}

Status in_schema_transaction(PostgresPool& pool, TransactionWork work) {
  return run_transaction(pool, work, {{"COMMIT"}});
}

}  // namespace playfs::service
