// Records in one SQLite database in WAL mode. Any number of threads and processes may use one file at once.
//
// Reads run side by side, each on a connection of its own; writes go through one connection and are committed in
// groups. The order of records is an AUTOINCREMENT sequence taken inside the write transaction: SQLite has one writer
// at a time, over all processes, so a lower number is never committed after a higher one was visible.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/sqlite.h"
#include "service/store.h"

namespace playfs::service {

class SqliteStore final : public Store {
 public:
  /// Opens or creates `path`. Clock and random must outlive the store.
  static Result<std::unique_ptr<SqliteStore>> open(const std::string& path, Database::Durability durability,
                                                   const Clock& clock, Random& random);
  ~SqliteStore() override;

  Result<StoredRecord> insert(const NewRecord& record) override;
  Result<StoredRecord> get(std::string_view collection, std::string_view id) override;
  Result<Page> list(std::string_view collection, std::size_t limit, Position before) override;
  Result<std::optional<StoredRecord>> replace(std::string_view collection, const StoredRecord& read,
                                              std::string fields) override;
  [[nodiscard]] const std::string& site_id() const override;

 private:
  struct Reader;
  struct Writer;
  class Readers;
  SqliteStore(std::unique_ptr<Readers> readers, std::unique_ptr<Writer> writer, std::string site_id);

  std::unique_ptr<Readers> readers_;
  std::unique_ptr<Writer> writer_;
  std::string site_id_;
};

}  // namespace playfs::service
