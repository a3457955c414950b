#include "service/postgres_writes.h"

#include <set>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "service/postgres_group.h"
#include "service/postgres_transaction.h"

namespace playfs::service {

namespace {

/// With the largest records, four megabytes.
constexpr std::size_t kLargestGroup = 256;
constexpr std::chrono::minutes kBetweenSweeps{1};

/// The writes that one transaction can make: the first for each key, and for each record.
std::vector<PostgresWrite*> first_of_each(const std::vector<PostgresWrite*>& writes) {
  std::vector<PostgresWrite*> chosen;
  std::set<std::string_view> keys, records;
  for (PostgresWrite* write : writes) {
    if (write->is_done) continue;
    if (write->replaced && !records.insert(write->replaced->id).second) continue;
    if (write->added && !write->added->request_key.empty() && !keys.insert(write->added->request_key).second) continue;
    chosen.push_back(write);
  }
  return chosen;
}

/// Ends a transaction that has failed, and returns why.
Status undo(PostgresConnection& connection, Error why, PostgresDeadline deadline) {
  // If this fails too, the connection is lost, and the server rolls back by itself.
  if (!is_lost(why)) std::ignore = connection.roll_back(deadline);
  return fail(std::move(why));
}

}  // namespace

PostgresWriter::PostgresWriter(PostgresPool& pool, const Clock& clock, Random& random)
    : pool_(pool),
      clock_(clock),
      random_(random),
      queue_(kLargestGroup, [this](const Group& group) { commit_together(group); }) {}

Result<std::optional<StoredRecord>> PostgresWriter::run(PostgresWrite write) {
  queue_.run(write);
  return std::move(write.answer);
}

void PostgresWriter::commit_together(const Group& group) {
  const auto deadline = std::chrono::steady_clock::now() + kPostgresWriteLimit;
  Retries retries(deadline);
  for (;;) {
    const Group writes = first_of_each(group);
    if (writes.empty()) break;
    auto committed = commit_some(writes, deadline);
    if (committed || retries.again(committed.error())) continue;
    for (PostgresWrite* write : group)
      if (!write->is_done) write->finish(fail(committed.error()));
  }
  sweep_now_and_then();
}

void PostgresWriter::sweep_now_and_then() {
  const auto now = std::chrono::steady_clock::now();
  if (now - swept_ < kBetweenSweeps) return;
  swept_ = now;
  if (auto swept = sweep_postgres_limits(pool_, clock_.wall()); !swept)
    log_warning("cannot remove expired write limits: " + swept.error().message);
}

Status PostgresWriter::commit_some(const Group& group, PostgresDeadline deadline) {
  PLAYFS_TRY(auto connection, pool_.take(deadline));
  PostgresGroup attempt(group, clock_.wall(), random_);
  auto statements = begin_transaction();
  const std::size_t questions = statements.size();
  attempt.add_questions(statements);
  if (!attempt.is_open()) return {};
  if (attempt.has_questions()) {
    auto answers = connection->run(statements, deadline);
    if (!answers) return undo(*connection, std::move(answers).error(), deadline);
    if (!attempt.decide(*answers, questions)) return connection->roll_back(deadline);
    statements.clear();
  }
  const std::size_t advance = statements.size();
  attempt.add_writes(statements);
  statements.push_back({"COMMIT"});
  auto answers = connection->run(statements, deadline);
  if (!answers) return undo(*connection, std::move(answers).error(), deadline);
  PLAYFS_CHECK(check_committed(answers->back()));
  attempt.finish((*answers)[advance]);
  return {};
}

}  // namespace playfs::service
