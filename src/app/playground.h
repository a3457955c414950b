// A playground of one's own: a directory with a store, and the service over it. What `playfs serve` puts on the
// network, and what a mount of `local:…` carries inside itself. Several processes may open one directory at once.
//
// Thread-safe as the service is.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "service/mailer.h"
#include "service/service.h"
#include "service/sqlite_store.h"

namespace playfs::app {

class Playground {
 public:
  /// The store's name in the directory.
  static constexpr std::string_view kStoreFile = "playground.db";

  /// Opens the playground in `directory`, and makes one where there is none (0700). The store's own site id is added
  /// to `options.site_hosts`. With a mailer, accounts can be had by email. Clock, random and mailer must outlive it.
  static Result<std::unique_ptr<Playground>> open(const std::string& directory, service::ServiceOptions options,
                                                  const Clock& clock, Random& random,
                                                  service::Mailer* mailer = nullptr);

  [[nodiscard]] const service::Service& service() const { return service_; }
  [[nodiscard]] service::Store& store() { return *store_; }

 private:
  Playground(std::unique_ptr<service::SqliteStore> store, std::optional<service::SignIn> sign_in,
             service::ServiceOptions options);
  std::unique_ptr<service::SqliteStore> store_;
  std::optional<service::SignIn> sign_in_;
  service::Service service_;
};

}  // namespace playfs::app
