// Owning wrappers for SQLite: connections, prepared statements, transactions.
//
// A Database and its Statements belong to one thread at a time; guard them with their owner's mutex. Statements must
// not outlive their Database. Errors distinguish a full disk, a busy database and corruption.
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

/// A reusable prepared statement:
///   PLAYFS_CHECK(insert.bind(1, id).bind(2, body).run());
///   while (PLAYFS_TRY(bool row, select.step()), row) select.text(0);
/// Parameters count from 1 and columns from 0, as in SQLite. Bound text is copied. The next step() or run() returns an
/// error from bind.
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

  /// Advances to the next row. Returns false at the end and resets the statement, ready to be rebound.
  [[nodiscard]] Result<bool> step();
  /// Runs to completion and resets; for statements that return no rows.
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
    normal,  ///< a power loss may lose the latest commits, but never tears one
    none,    ///< a power loss may corrupt the database; for data that can be recreated
  };

  /// Opens or creates `path` (0600) in WAL mode with foreign keys on and a busy timeout of 10 s. Durability::none uses
  /// rollback mode instead, which maps no file into memory (truncating a mapped file would kill the process), and does
  /// not wait: a locked database returns `busy`.
  static Result<Database> open(const std::string& path, Durability durability);

  Database(Database&& other) noexcept;
  Database& operator=(Database&& other) noexcept;
  ~Database();

  /// One or more statements without parameters: schema and pragmas.
  [[nodiscard]] Status execute(const std::string& sql);
  [[nodiscard]] Result<Statement> prepare(std::string_view sql);
  [[nodiscard]] std::int64_t rows_changed() const;

  /// Makes all commits so far durable, whatever the Durability. May run while another thread uses the database, but not
  /// concurrently with itself. Errors are sticky: the kernel reports a failed write once and then marks the page clean,
  /// so a later sync would succeed with nothing on disk. After an error the WAL is no longer checkpointed either. Write
  /// errors are detected from the first call on.
  [[nodiscard]] Status sync();

  /// Copies the whole database to `path` while others read and write.
  [[nodiscard]] Status backup_to(const std::string& path);

  /// `PRAGMA integrity_check`; fails with the first finding.
  [[nodiscard]] Status check_integrity();

 private:
  friend class Transaction;
  explicit Database(sqlite3* handle) : handle_(handle) {}
  sqlite3* handle_ = nullptr;
  /// The WAL, opened once: a descriptor reports every write error since it was opened, including those that SQLite's
  /// own descriptors have already reported.
  UniqueFd log_;
  std::optional<Error> sync_error_;
};

/// Rolls back unless committed. Begins IMMEDIATE, so that any wait for the write lock happens up front.
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
