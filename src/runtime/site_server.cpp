#include "runtime/site_server.h"

#include <utility>

#include "base/fd.h"
#include "http/export.h"
#include "http/watch.h"
#include "runtime/smtp_mailer.h"
#include "service/outbox.h"
#include "service/postgres_store.h"

namespace playfs::runtime {

namespace {
Result<std::unique_ptr<LocalPlayground>> open_playground(SiteServerOptions& options, const Clock& clock, Random& random,
                                                         service::Mailer* mailer, service::StoreTimes& times) {
  if (options.database.empty())
    return LocalPlayground::open(options.directory, std::move(options.service), clock, random, mailer, &times);
  PLAYFS_CHECK(make_private_directory(options.directory));
  PLAYFS_TRY(auto store, service::PostgresStore::open(options.database, clock, random));
  return LocalPlayground::over(std::move(store), std::move(options.service), clock, random, mailer, &times);
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
  PLAYFS_CHECK(site->listen(options, clock));
  http::PagesOptions pages{options.service.base_path, options.service.site_hosts};
  options.service.software = "playfs " PLAYFS_VERSION;
  options.service.other_abilities = {
      {"pages", JsonObject{{"path", "/"}, {"llms", "/llms.txt"}, {"account", "/account"}}},
      {"feeds", JsonObject{{"project", "/projects/{id}/feed.atom"}, {"thread", "/threads/{id}/feed.atom"}}}};
  PLAYFS_TRY(site->playground_, open_playground(options, clock, random, site->mailer_.get(), site->times_));
  const service::TrustedProxies& proxies = site->proxies_;
  site->account_ = std::make_unique<http::AccountPage>(
      site->playground_->accounts(), *site->playground_->sign_in(), clock,
      http::AccountPage::Options{[&proxies](const HttpRequest& request, const std::string& peer) {
                                   return service::counted_address(proxies.client_of(request, peer));
                                 },
                                 [&proxies](const HttpRequest& request, const std::string& peer) {
                                   return proxies.is_secure(request, peer);
                                 }});
  pages.account = site->account_.get();
  site->pages_ = std::make_unique<http::Pages>(site->playground_->store(), std::move(pages));
  site->health_->open([&store = site->playground_->store()] { return store.try_to_write(); });
  return site;
}

Status SiteServer::listen(SiteServerOptions& options, const Clock& clock) {
  http::Front::Options front;
  front.site = service::SiteHosts(options.service.site_hosts);
  front.client = [this](const HttpRequest& request, const std::string& peer) {
    return proxies_.client_of(request, peer);
  };
  front.classify = [this](const HttpRequest& request) { return classify(request); };
  front.more_metrics = [this] {
    std::string metrics;
    http::print_load(server_->load(), metrics);
    times_.print(metrics);
    return metrics;
  };
  if (!options.access_log.empty()) {
    PLAYFS_TRY(log_, http::AccessLog::open(options.access_log));
    front.log = log_.get();
  }
  options.listen.is_check = http::Front::is_own;
  // A form of the account's page writes, and may send mail.
  options.listen.is_page = [this](const HttpRequest& request) {
    return !health_->is_starting() && request.method != "POST" && is_page(request);
  };
  options.listen.client = front.client;
  health_ = std::make_unique<http::Health>(clock);
  front_ = std::make_unique<http::Front>(
      [this](const HttpRequest& request, const std::string& peer) { return handle(request, peer); }, *health_,
      std::move(front), clock);
  PLAYFS_TRY(server_, http::Server::start(std::move(options.listen),
                                          [this](const HttpRequest& request, const std::string& peer) {
                                            return front_->handle(request, peer);
                                          }));
  return {};
}

bool SiteServer::is_page(const HttpRequest& request) const { return pages_->serves(request.target); }

http::RouteClass SiteServer::classify(const HttpRequest& request) const {
  using http::RouteClass;
  const std::string_view path = std::string_view(request.target).substr(0, request.target.find('?'));
  const bool reads = request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS";
  if (http::AccountPage::serves(path)) return RouteClass::account;
  if (is_page(request)) return RouteClass::page;
  if (playground_->service().is_watch(request)) return RouteClass::events;
  if (playground_->service().is_export(request)) return RouteClass::export_;
  if (path.starts_with(service::SignIn::kBasePath)) return RouteClass::sign_in;
  return reads ? RouteClass::read : RouteClass::write;
}

http::Answer SiteServer::handle(const HttpRequest& request, const std::string& peer) const {
  if (is_page(request)) return pages_->handle(request, peer);
  if (playground_->service().is_watch(request))
    return http::watch(playground_->service(), playground_->feed(), request);
  if (playground_->service().is_export(request)) return http::export_records(playground_->service(), request);
  return playground_->service().handle(request, {peer});
}

}  // namespace playfs::runtime
