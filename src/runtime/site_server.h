// A site on the network, which `playfs serve` runs: a playground, its web page, the listener, access log and mail.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "http/front.h"
#include "http/health.h"
#include "http/pages/pages.h"
#include "http/server.h"
#include "net/smtp.h"
#include "runtime/local_playground.h"
#include "service/mailer.h"

namespace playfs::runtime {

struct SiteServerOptions {
  std::string directory;  ///< of the playground; with a database, for what this server alone keeps
  std::string database;   ///< postgresql://…, which other servers may share; empty: the store is in `directory`
  service::ServiceOptions service;
  http::ServerOptions listen;
  std::string access_log;               ///< a file; empty: none
  std::optional<net::SmtpServer> smtp;  ///< none: sign-in codes go into `directory`/outbox
};

class SiteServer {
 public:
  /// Serves requests when it returns; until then it answers health checks, and 503 to all else. Clock and random must
  /// outlive it.
  static Result<std::unique_ptr<SiteServer>> start(SiteServerOptions options, const Clock& clock, Random& random);

  [[nodiscard]] std::string endpoint() const { return server_->endpoint(); }
  /// Where sign-in codes are written; empty if they are mailed.
  [[nodiscard]] const std::string& outbox() const { return outbox_; }

  /// Goes on serving, but says that it is not ready, so that proxies send requests elsewhere.
  void drain() { health_->drain(); }
  /// Finishes running requests, then ends. Idempotent.
  void stop() { server_->stop(); }

 private:
  SiteServer() = default;
  /// Listens, with nothing to serve yet.
  Status listen(SiteServerOptions& options, const Clock& clock);
  bool is_page(const HttpRequest& request) const;
  http::Answer handle(const HttpRequest& request, const std::string& peer) const;

  [[nodiscard]] http::RouteClass classify(const HttpRequest& request) const;

  std::string outbox_;
  service::StoreTimes times_;
  service::TrustedProxies proxies_;
  std::unique_ptr<service::Mailer> mailer_;
  std::unique_ptr<LocalPlayground> playground_;
  std::unique_ptr<http::AccountPage> account_;
  std::unique_ptr<http::Pages> pages_;
  std::unique_ptr<http::AccessLog> log_;
  std::unique_ptr<http::Health> health_;
  std::unique_ptr<http::Front> front_;
  std::unique_ptr<http::Server> server_;  // last, so that it ends before what it calls
};

}  // namespace playfs::runtime
