// The statements of one attempt to commit some writes together, and what their answers mean. For one thread.
//
// REQUIRES: no two of the writes insert with the same key or replace the same record.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "service/postgres_limits.h"
#include "service/postgres_values.h"
#include "service/postgres_writes.h"

namespace playfs::service {

class PostgresGroup {
 public:
  PostgresGroup(std::vector<PostgresWrite*> writes, WallTime now, Random& random);

  /// Adds the statements that decide what can be written, if there is anything to decide. An insert whose key gets a
  /// record meanwhile, by another server, fails the transaction with kUniqueViolation.
  void add_questions(std::vector<PostgresStatement>& statements);
  [[nodiscard]] bool has_questions() const { return !questions_.empty(); }
  /// Whether any write is not finished.
  [[nodiscard]] bool is_open() const { return count_open() > 0; }

  /// Takes their answers, of which `next` is the first. Returns whether to go on. Otherwise some writes are finished
  /// without having been written, the others have been charged together with them, and the transaction must be undone.
  bool decide(const std::vector<PostgresRows>& rows, std::size_t next);

  /// Adds the statements that write what is left.
  void add_writes(std::vector<PostgresStatement>& statements);
  /// After the commit, `rows` being the answer to the first of them.
  void finish(const PostgresRows& rows);

 private:
  enum class Question { keys, records, charges };
  struct Written {
    PostgresWrite* write;
    StoredRecord record;
    std::int64_t change;  ///< its number, counted within this group; 0: none
  };

  void ask_for_keys(std::vector<PostgresStatement>& statements);
  void ask_for_records(std::vector<PostgresStatement>& statements);
  void find_keys(const PostgresRows& rows);
  void find_records(const PostgresRows& rows);
  void refuse_what_is_over_limits();
  [[nodiscard]] std::size_t count_open() const;
  PostgresStatement insert_statement(std::int64_t changes);
  PostgresStatement update_statement(std::int64_t changes);

  const std::vector<PostgresWrite*> writes_;
  const WallTime now_;
  Random& random_;
  std::vector<Question> questions_;
  PostgresCharges charges_;
  std::map<std::string_view, StoredRecord> current_;  ///< the records to be replaced
  std::vector<Written> added_;
  std::vector<Written> replaced_;
};

}  // namespace playfs::service
