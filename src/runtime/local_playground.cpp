#include "runtime/local_playground.h"

#include <utility>

#include "base/fd.h"
#include "base/private_place.h"
#include "service/sqlite_store.h"

namespace playfs::runtime {

Result<std::unique_ptr<LocalPlayground>> LocalPlayground::open(const std::string& directory,
                                                               service::ServiceOptions options, const Clock& clock,
                                                               Random& random, service::Mailer* mailer,
                                                               service::StoreTimes* times) {
  PLAYFS_CHECK(check_may_become_private(directory, std::string(kStoreFile)));
  PLAYFS_CHECK(make_private_directory(directory));
  PLAYFS_TRY(auto store, service::SqliteStore::open(directory + "/" + std::string(kStoreFile),
                                                    Database::Durability::full, clock, random));
  return over(std::move(store), std::move(options), clock, random, mailer, times);
}

std::unique_ptr<LocalPlayground> LocalPlayground::over(std::unique_ptr<service::SiteStore> store,
                                                       service::ServiceOptions options, const Clock& clock,
                                                       Random& random, service::Mailer* mailer,
                                                       service::StoreTimes* times) {
  options.site_hosts.push_back(store->site_id());
  std::optional<service::SignIn> sign_in;
  if (mailer) sign_in.emplace(*store, *mailer, clock, random);
  return std::unique_ptr<LocalPlayground>(
      new LocalPlayground(std::move(store), std::move(sign_in), std::move(options), times));
}

LocalPlayground::LocalPlayground(std::unique_ptr<service::SiteStore> store, std::optional<service::SignIn> sign_in,
                                 service::ServiceOptions options, service::StoreTimes* times)
    : store_(std::move(store)),
      measured_(times ? std::make_unique<service::MeasuredStore>(*store_, *times) : nullptr),
      sign_in_(std::move(sign_in)),
      feed_(this->store()),
      service_(this->store(), *store_, std::move(options), sign_in_ ? &*sign_in_ : nullptr, &feed_) {}

}  // namespace playfs::runtime
