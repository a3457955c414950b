// Statements for PostgreSQL, their parameters, and the rows that come back: everything in the protocol's binary format,
// so that nothing is quoted or parsed. Plain values.
//
// Whatever strangers wrote is stored as bytes (bytea): PostgreSQL's text refuses NUL, which JSON can spell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/postgres_functions.h"

namespace playfs::service {

/// The values of $1, $2 …, in that order. Each call adds one and returns the object. An array has one element for each
/// row of an unnest(); nullopt is NULL.
class Parameters {
 public:
  Parameters& integer(std::int64_t value);
  Parameters& text(std::string_view value);
  Parameters& bytes(std::string_view value);
  Parameters& integers(const std::vector<std::optional<std::int64_t>>& values);
  Parameters& texts(const std::vector<std::string_view>& values);
  Parameters& byte_strings(const std::vector<std::optional<std::string_view>>& values);

  [[nodiscard]] std::size_t count() const { return values_.size(); }
  [[nodiscard]] const std::vector<Oid>& types() const { return types_; }
  [[nodiscard]] const std::vector<std::string>& values() const { return values_; }

 private:
  Parameters& add(Oid type, std::string value);
  std::vector<Oid> types_;
  std::vector<std::string> values_;
};

struct PostgresStatement {
  const char* sql;
  Parameters parameters = {};
};

/// The rows of one statement. A column must have the type that it is read as: bigint, or text or bytea.
class PostgresRows {
 public:
  explicit PostgresRows(PGresult* result) : result_(result) {}

  [[nodiscard]] int count() const { return PQntuples(result_.get()); }
  [[nodiscard]] bool empty() const { return count() == 0; }
  [[nodiscard]] std::int64_t integer(int row, int column) const;
  [[nodiscard]] bool is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) == 1; }
  /// Empty for NULL.
  [[nodiscard]] std::string_view bytes(int row, int column) const;
  [[nodiscard]] std::string string(int row, int column) const { return std::string(bytes(row, column)); }
  /// What the statement was, in words: "COMMIT", "INSERT 0 3".
  [[nodiscard]] std::string_view tag() const { return PQcmdStatus(result_.get()); }

 private:
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

}  // namespace playfs::service
