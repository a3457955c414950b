#include "runtime/site_server.h"

#include <utility>

#include "base/fd.h"
#include "http/watch.h"
#include "runtime/smtp_mailer.h"
#include "service/outbox.h"
#include "service/postgres_store.h"

namespace playfs::runtime {

namespace {
/// Whether the store answers: the newest record of any collection will do.
Status read_something(service::Store& store) {
  auto page = store.list(service::all_collections().front().name, 1, service::kNewest);
  if (!page) return fail(std::move(page).error());
  return {};
}

Result<std::unique_ptr<LocalPlayground>> open_playground(SiteServerOptions& options, const Clock& clock, Random& random,
                                                         service::Mailer* mailer) {
  if (options.database.empty())
    return LocalPlayground::open(options.directory, std::move(options.service), clock, random, mailer);
  PLAYFS_CHECK(make_private_directory(options.directory));
  PLAYFS_TRY(auto store, service::PostgresStore::open(options.database, clock, random));
  return LocalPlayground::over(std::move(store), std::move(options.service), clock, random, mailer);
}
}  // namespace

Result<std::unique_ptr<SiteServer>> SiteServer::start(SiteServerOptions options, const Clock& clock, Random& random) {
  std::unique_ptr<SiteServer> site(new SiteServer());
  site->proxies_ = options.service.proxies;
  if (options.smtp) {
    site->mailer_ = std::make_unique<SmtpMailer>(*std::move(options.smtp), clock, random);
  } else {
    site->outbox_ = options.directory + "/outbox";
    site->mailer_ = std::make_unique<service::Outbox>(site->outbox_);
  }
  http::Front::Options front;
  front.site = service::SiteHosts(options.service.site_hosts);
  http::PagesOptions pages{options.service.base_path, options.service.site_hosts};
  PLAYFS_TRY(site->playground_, open_playground(options, clock, random, site->mailer_.get()));
  site->pages_ = std::make_unique<http::Pages>(site->playground_->store(), std::move(pages));
  front.healthy = [&store = site->playground_->store()] { return read_something(store); };
  front.client = [&proxies = site->proxies_](const HttpRequest& request, const std::string& peer) {
    return proxies.client_of(request, peer);
  };
  if (!options.access_log.empty()) {
    PLAYFS_TRY(site->log_, http::AccessLog::open(options.access_log));
    front.log = site->log_.get();
  }
  options.listen.is_check = http::Front::is_own;
  options.listen.is_page = [&site = *site](const HttpRequest& request) { return site.is_page(request); };
  options.listen.client = front.client;
  site->front_ = std::make_unique<http::Front>(
      [&site = *site](const HttpRequest& request, const std::string& peer) { return site.handle(request, peer); },
      std::move(front), clock);
  PLAYFS_TRY(site->server_,
             http::Server::start(std::move(options.listen),
                                 [&front = *site->front_](const HttpRequest& request, const std::string& peer) {
                                   return front.handle(request, peer);
                                 }));
  return site;
}

bool SiteServer::is_page(const HttpRequest& request) const {
  return pages_->serves(request.target) && !playground_->service().is_watch(request);
}

http::Answer SiteServer::handle(const HttpRequest& request, const std::string& peer) const {
  if (is_page(request)) return pages_->handle(request);
  if (playground_->service().is_watch(request))
    return http::watch(playground_->service(), playground_->feed(), request);
  return playground_->service().handle(request, {peer});
}

}  // namespace playfs::runtime
