#include "service/sqlite_connections.h"

#include <utility>

#include "service/closed_store.h"

namespace playfs::service {

namespace {

/// In the transaction that writes.
Status require_open(Connection& connection) {
  PLAYFS_TRY(auto site, connection.use("SELECT 1 FROM site WHERE closed = ''"));
  PLAYFS_TRY(bool is_open, site->step());
  if (is_open) return {};
  return fail(closed_for_writing());
}

}  // namespace

Result<Connection::Use> Connection::use(std::string_view sql) {
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    PLAYFS_TRY(Statement prepared, database_.prepare(sql));
    found = statements_.emplace(sql, std::move(prepared)).first;
  }
  return Use(found->second);
}

Result<std::unique_ptr<Connections>> Connections::open(const std::string& path, Database::Durability durability) {
  PLAYFS_TRY(Database writer, Database::open(path, durability));
  return std::unique_ptr<Connections>(new Connections(path, std::move(writer)));
}

Connections::Connections(std::string path, Database writer)
    : path_(std::move(path)), writer_(std::move(writer)), queue_(writer_.database()) {}

Status Connections::write(UniqueFunction<Status(Connection&)> write) {
  return queue_.run([&]() -> Status {
    PLAYFS_CHECK(require_open(writer_));
    return write(writer_);
  });
}

Result<Connections::Loan> Connections::read() {
  {
    MutexLock lock(mutex_);
    if (!free_.empty()) {
      auto connection = std::move(free_.back());
      free_.pop_back();
      return Loan(*this, std::move(connection));
    }
  }
  PLAYFS_TRY(Database database, Database::open(path_, Database::Durability::normal));
  return Loan(*this, std::make_unique<Connection>(std::move(database)));
}

Connections::Loan::~Loan() {
  if (!connection_) return;
  MutexLock lock(owner_->mutex_);
  owner_->free_.push_back(std::move(connection_));
}

}  // namespace playfs::service
