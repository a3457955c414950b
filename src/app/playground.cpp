#include "app/playground.h"

#include <utility>

#include "base/fd.h"

namespace playfs::app {

Result<std::unique_ptr<Playground>> Playground::open(const std::string& directory, service::ServiceOptions options,
                                                     const Clock& clock, Random& random) {
  PLAYFS_CHECK(make_private_directory(directory));
  PLAYFS_TRY(auto store,
             service::SqliteStore::open(directory + "/playground.db", Database::Durability::full, clock, random));
  options.site_hosts.push_back(store->site_id());
  return std::unique_ptr<Playground>(new Playground(std::move(store), std::move(options)));
}

Playground::Playground(std::unique_ptr<service::SqliteStore> store, service::ServiceOptions options)
    : store_(std::move(store)), service_(*store_, *store_, std::move(options)) {}

}  // namespace playfs::app
