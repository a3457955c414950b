#include "http/pages/pages.h"

#include <exception>
#include <utility>

#include "base/log.h"
#include "http/pages/assets.h"
#include "http/pages/feed.h"
#include "http/pages/views.h"
#include "model/content_hash.h"
#include "service/conditional.h"
#include "service/problem.h"
#include "service/target.h"

namespace playfs::http {

namespace {

constexpr std::string_view kAssets = "/assets/";
constexpr std::size_t kHashLength = 16;  // hex digits

constexpr const char* kPagePolicy =
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// An asset's address changes with its content, so it may be cached forever.
Url url_of_asset(std::string_view name, std::string_view bytes, std::string_view suffix) {
  std::string hash = ContentHash::of(bytes).hex().substr(0, kHashLength);
  return Url() / "assets" / (std::string(name) + '-' + hash + std::string(suffix));
}

Url style_url() {
  static const Url url = url_of_asset("style", style_sheet(), ".css");
  return url;
}

Url icon_url() {
  static const Url url = url_of_asset("icon", site_icon(), ".svg");
  return url;
}

HttpResponse response_of(const Document& document, const SiteView& site) {
  HttpResponse response;
  response.status = document.status;
  response.headers.add("Content-Type", "text/html; charset=utf-8");
  response.headers.add("Content-Security-Policy", kPagePolicy);
  response.body = print(document, site);
  return response;
}

Error no_such_page() { return {ErrorCode::not_found, "there is no such page"}; }

Document page_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::not_found:
      return problem_page(404, "Not found", "There is nothing at this address: " + error.message + ".");
    case ErrorCode::refused_input:
    case ErrorCode::file_too_big:
    case ErrorCode::quota_exceeded:
      return problem_page(422, "This cannot be shown",
                          "What was published here cannot be shown: " + error.message + ".");
    default: break;
  }
  auto problem = service::problem_of(error);
  return problem_page(problem.status, service::reason_phrase(problem.status), problem.message + ".");
}

/// Scheme and host as the visitor's browser knows them. The scheme comes from a proxy's header; a client that forges it
/// only gets a wrong command on its own screen.
std::string url_of_site(const HttpRequest& request, std::string_view host) {
  bool secure = request.headers.get("X-Forwarded-Proto").value_or("") == "https";
  return (secure ? "https://" : "http://") + std::string(host);
}

/// Adds what every answer has; pages follow the same caching rules as records.
Answer finish(const HttpRequest& request, Answer answer) {
  HttpResponse& response = answer.response;
  const bool is_account = AccountPage::serves(std::string_view(request.target).substr(0, request.target.find('?')));
  response.headers.add("X-Content-Type-Options", "nosniff");
  // Without a referrer, browsers do not say where a form comes from either.
  response.headers.add("Referrer-Policy", is_account ? "same-origin" : "no-referrer");
  response.headers.add("Cross-Origin-Opener-Policy", "same-origin");
  response.headers.add("Cross-Origin-Resource-Policy", "same-origin");
  if (is_account) response.headers.set("Content-Security-Policy", kPagePolicy);
  if (response.status != 200 || is_account) {
    response.headers.add("Cache-Control", "no-store");
    return answer;
  }
  // Everything but assets may change with the next record, and revalidating is cheap.
  const bool asset = request.target.starts_with(kAssets);
  service::make_cacheable(request, response, answer.source ? answer.tag : service::etag_of_text(response.body),
                          asset ? service::Freshness::for_ever : service::Freshness::always_ask);
  if (response.status == 304) answer.source.reset();
  return answer;
}

HttpResponse asset_response(std::string_view type, std::string_view bytes) {
  HttpResponse response;
  response.status = 200;
  response.headers.add("Content-Type", std::string(type));
  response.headers.add("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  response.body = bytes;
  return response;
}

std::string rest_of_path(const std::vector<std::string>& segments, std::size_t from) {
  std::string path;
  for (std::size_t i = from; i < segments.size(); ++i) path += (i > from ? "/" : "") + segments[i];
  return path;
}

HttpResponse redirection(const Url& url) {
  HttpResponse response;
  response.status = 303;
  response.headers.add("Location", url.text());
  return response;
}

Result<Document> find_below_project(Visit& visit, const std::vector<std::string>& segments) {
  const std::string& project = segments[1];
  const std::size_t count = segments.size();
  if (count == 2) return project_page(visit, project);
  const std::string& what = segments[2];
  if (what == "log" && count == 3) return log_page(visit, project);
  if (what == "diff" && count == 4) return diff_page(visit, project, segments[3]);
  if (what == "revisions" && count == 4) return revision_page(visit, project, segments[3]);
  if (what == "revisions" && count > 5 && segments[4] == "files")
    return file_page(visit, project, segments[3], rest_of_path(segments, 5));
  return fail(ErrorCode::not_found, "projects have no such page");
}

Result<Document> find_document(Visit& visit, const std::vector<std::string>& segments) {
  using List = Result<Document> (*)(Visit&);
  using Item = Result<Document> (*)(Visit&, const std::string&);
  struct Place {
    std::string_view segment;
    List list;
    Item item;
  };
  static constexpr Place kPlaces[] = {
      {"projects", projects_page, project_page}, {"threads", threads_page, thread_page},
      {"agents", agents_page, agent_page},       {"mail", mail_page, letter_page},
      {"spaces", spaces_page, space_page},       {"records", collections_page, collection_page}};
  if (segments.empty()) return home_page(visit);
  if (segments[0] == "projects" && segments.size() > 2) return find_below_project(visit, segments);
  if (segments[0] == "threads" && segments.size() == 4 && segments[2] == "messages")
    return message_page(visit, segments[1], segments[3]);
  if (segments[0] == "records" && segments.size() == 3) return record_page(visit, segments[1], segments[2]);
  for (const Place& place : kPlaces) {
    if (segments[0] != place.segment) continue;
    if (segments.size() == 1) return place.list(visit);
    if (segments.size() == 2) return place.item(visit, segments[1]);
  }
  return fail(no_such_page());
}

}  // namespace

Pages::Pages(service::Store& store, PagesOptions options)
    : store_(store), options_(std::move(options)), site_(options_.site_hosts) {}

bool Pages::serves(std::string_view target) const {
  const std::string_view base(options_.base_path);
  for (std::string_view own : {base, base.substr(0, base.rfind('/')), std::string_view("/api")}) {
    if (own.empty()) continue;
    if (!target.starts_with(own)) continue;
    std::string_view rest = target.substr(own.size());
    if (rest.empty() || rest.front() == '/' || rest.front() == '?') return false;
  }
  return true;
}

Answer Pages::handle(const HttpRequest& request, const std::string& peer) const {
  try {
    return finish(request, route(request, peer));
  } catch (const std::exception& exception) {
    log_error(std::string("web page: ") + exception.what());
    HttpResponse response;
    response.status = 500;
    response.headers.add("Content-Type", "text/plain; charset=utf-8");
    response.body = "The service failed; see its log.\n";
    return response;
  }
}

Answer Pages::route(const HttpRequest& request, const std::string& peer) const {
  const std::string host(request.headers.get("Host").value_or(""));
  const SiteView site{
      host,       url_of_site(request, host), Url().below(std::string_view(options_.base_path).substr(1)), style_url(),
      icon_url(), options_.account != nullptr};
  if (!site_.answers_for(host))
    return response_of(problem_page(421, "Misdirected request", "This host does not belong to this site."), site);
  if (options_.account && AccountPage::serves(std::string_view(request.target).substr(0, request.target.find('?'))))
    return options_.account->handle(request, peer, site_, site);
  if (request.method != "GET" && request.method != "HEAD") {
    auto response = response_of(problem_page(405, "Method not allowed", "These pages are read-only."), site);
    response.headers.add("Allow", "GET, HEAD");
    return response;
  }
  auto target = service::parse_target(request.target);
  if (!target) return response_of(page_of(target.error()), site);
  if (target->path == style_url().text()) return asset_response("text/css; charset=utf-8", style_sheet());
  if (target->path == icon_url().text()) return asset_response("image/svg+xml", site_icon());
  auto segments = service::segments_below("", target->path);
  if (!segments) return response_of(page_of(no_such_page()), site);
  Visit visit{store_, Reader(store_), site, *target};
  auto answer = find(visit, *segments);
  return answer ? *std::move(answer) : response_of(page_of(answer.error()), site);
}

Result<Answer> Pages::find(Visit& visit, const std::vector<std::string>& segments) const {
  const bool in_project = segments.size() > 2 && segments[0] == "projects";
  if (in_project && segments.size() > 5 && segments[2] == "revisions" && segments[4] == "raw")
    return raw_file(visit, segments[1], segments[3], rest_of_path(segments, 5));
  if (in_project && segments.size() == 3 && segments[2] == "diff")
    return redirection(url_of_diff(segments[1], visit.parameter("from"), visit.parameter("to")));
  if (segments.size() == 3 && segments[2] == kFeedName) {
    if (segments[0] == "projects") return project_feed(visit, segments[1]);
    if (segments[0] == "threads") return thread_feed(visit, segments[1]);
  }
  if (segments.size() == 1 && segments[0] == "llms.txt") return llms_text(visit.site);
  PLAYFS_TRY(Document document, find_document(visit, segments));
  return response_of(document, visit.site);
}

}  // namespace playfs::http
