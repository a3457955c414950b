// A playground of this process: a store and the service over it. `playfs serve` puts it on the network, and a mount of
// `local:…` hosts it in its own process. The store is a directory, or a database; several processes may open either.
//
// Thread-safe like the service.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "service/change_feed.h"
#include "service/mailer.h"
#include "service/measured_store.h"
#include "service/service.h"
#include "service/site_store.h"

namespace playfs::runtime {

class LocalPlayground {
 public:
  /// The store's file name in the directory.
  static constexpr std::string_view kStoreFile = "playground.db";

  /// Opens the playground in `directory`, creating it (0700) if needed. Adds the store's own site id to
  /// `options.site_hosts`. With a mailer, people can sign in by email; with times, the store is measured. Clock,
  /// random, mailer and times must outlive it.
  static Result<std::unique_ptr<LocalPlayground>> open(const std::string& directory, service::ServiceOptions options,
                                                       const Clock& clock, Random& random,
                                                       service::Mailer* mailer = nullptr,
                                                       service::StoreTimes* times = nullptr);
  /// The same over a store that is open already.
  static std::unique_ptr<LocalPlayground> over(std::unique_ptr<service::SiteStore> store,
                                               service::ServiceOptions options, const Clock& clock, Random& random,
                                               service::Mailer* mailer = nullptr, service::StoreTimes* times = nullptr);

  [[nodiscard]] const service::Service& service() const { return service_; }
  [[nodiscard]] service::Store& store() { return measured_ ? static_cast<service::Store&>(*measured_) : *store_; }
  [[nodiscard]] service::Accounts& accounts() { return *store_; }
  /// nullptr: nobody can sign in.
  [[nodiscard]] const service::SignIn* sign_in() const { return sign_in_ ? &*sign_in_ : nullptr; }
  /// What Service::watch() continues with.
  [[nodiscard]] service::ChangeFeed& feed() { return feed_; }

 private:
  LocalPlayground(std::unique_ptr<service::SiteStore> store, std::optional<service::SignIn> sign_in,
                  service::ServiceOptions options, service::StoreTimes* times);
  std::unique_ptr<service::SiteStore> store_;
  std::unique_ptr<service::MeasuredStore> measured_;  // over it
  std::optional<service::SignIn> sign_in_;
  service::ChangeFeed feed_;
  service::Service service_;
};

}  // namespace playfs::runtime
