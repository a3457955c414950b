// SQLite with its handles owned: connections in WAL mode, prepared statements, transactions.
//
// A Database and its Statements belong to one thread at a time; guard them with the mutex of whatever owns them.
// Statements must not outlive their Database. Any error of SQLite comes back as an Error that keeps full disks,
// busy databases and corruption apart.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace playfs {

class Database;

/// A prepared statement, used over and over:
///   PLAYFS_CHECK(insert.bind(1, id).bind(2, body).run());
///   while (PLAYFS_TRY(bool row, select.step()), row) select.text(0);
/// Parameters count from 1 and columns from 0, as in SQLite. Bound text is copied. An error in bind is kept and
/// returned by the next step() or run().
class Statement {
 public:
  Statement() = default;
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, std::string_view text);
  Statement& bind_blob(int index, std::string_view bytes);
  Statement& bind_null(int index);

  /// Advances to the next row; false at the end, when the statement is reset and ready to be bound again.
  [[nodiscard]] Result<bool> step();
  /// Runs to the end and resets: for statements that return nothing.
  [[nodiscard]] Status run();
  /// Ends a query before its last row.
  void reset();

  [[nodiscard]] std::int64_t integer(int column) const;
  /// Text or blob; valid until the next step, reset or bind.
  [[nodiscard]] std::string_view text(int column) const;
  [[nodiscard]] bool is_null(int column) const;

 private:
  friend class Database;
  explicit Statement(sqlite3_stmt* handle) : handle_(handle) {}
  sqlite3_stmt* handle_ = nullptr;
  int bind_error_ = 0;
};

class Database {
 public:
  /// What survives a power loss. A crash of the process alone never loses a committed transaction.
  enum class Durability {
    full,    ///< every commit is synced before it returns
    normal,  ///< the last commits before a power loss may be lost, but never torn
    none,    ///< a power loss may leave a damaged database: for what can be had again
  };

  /// Opens or creates `path` (0600) in WAL mode with foreign keys on and a busy timeout of 10 s. With Durability::none
  /// in rollback mode, where no file is mapped into memory (one that somebody cuts off would end the process), and
  /// without waiting: a database that is locked answers `busy`.
  static Result<Database> open(const std::string& path, Durability durability);

  Database(Database&& other) noexcept;
  Database& operator=(Database&& other) noexcept;
  ~Database();

  /// One or more statements without parameters: schema and pragmas.
  [[nodiscard]] Status execute(const std::string& sql);
  [[nodiscard]] Result<Statement> prepare(std::string_view sql);
  [[nodiscard]] std::int64_t last_insert_id() const;
  [[nodiscard]] std::int64_t rows_changed() const;

  /// Makes everything committed so far safe from a power loss, whatever the durability of single commits. May run
  /// while another thread uses the database, but not beside itself. An error stays the answer from then on: the kernel
  /// reports a failed write once and then takes the page for clean, so a later sync would succeed with nothing on disk.
  /// The write-ahead log is not brought into the database any more either. Errors are seen from the first call on.
  [[nodiscard]] Status sync();

  /// A copy of the whole database in `path`, taken while others read and write.
  [[nodiscard]] Status backup_to(const std::string& path);

  /// `PRAGMA integrity_check`: an error with the first finding, or nothing.
  [[nodiscard]] Status check_integrity();

 private:
  friend class Transaction;
  explicit Database(sqlite3* handle) : handle_(handle) {}
  sqlite3* handle_ = nullptr;
  /// The write-ahead log, opened once: a descriptor is told of every failed write since it was opened, also of those
  /// that SQLite's own descriptors were told of.
  UniqueFd log_;
  std::optional<Error> sync_error_;
};

/// Rolls back unless committed. Begins IMMEDIATE, so that the wait for the write lock is at the start.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  [[nodiscard]] Status commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace playfs
