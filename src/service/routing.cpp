// Service: from a request to the operation that it asks for, by the table in operations.h.
#include <exception>
#include <utility>

#include "model/records.h"
#include "service/conditional.h"
#include "service/record_text.h"
#include "service/service.h"
#include "wire/json.h"

namespace playfs::service {

namespace {

std::string_view host_of(const HttpRequest& request) { return request.headers.get("Host").value_or(""); }

std::string_view path_of(const HttpRequest& request) {
  return std::string_view(request.target).substr(0, request.target.find('?'));
}

Error error_of(const std::exception& exception) {
  return {ErrorCode::internal, std::string("exception: ") + exception.what()};
}

}  // namespace

HttpResponse Service::handle(const HttpRequest& request, const Caller& caller) const {
  try {
    Asked asked;
    if (auto refusal = look_up(request, asked)) return *std::move(refusal);
    return perform(asked, request, caller);
  } catch (const std::exception& exception) {
    return answer(fail(error_of(exception)));
  }
}

bool Service::is_watch(const HttpRequest& request) const { return feed_ && is_at(request, Place::events); }

Watch Service::watch(const HttpRequest& request) const {
  try {
    Asked asked;
    if (auto refusal = look_up(request, asked)) return {*std::move(refusal), std::nullopt};
    return begin_watch(asked.target, request);
  } catch (const std::exception& exception) {
    return {answer(fail(error_of(exception))), std::nullopt};
  }
}

bool Service::is_export(const HttpRequest& request) const { return is_at(request, Place::export_of); }

Export Service::export_records(const HttpRequest& request) const {
  try {
    Asked asked;
    if (auto refusal = look_up(request, asked)) return {*std::move(refusal), nullptr};
    return begin_export(asked, request);
  } catch (const std::exception& exception) {
    return {answer(fail(error_of(exception))), nullptr};
  }
}

bool Service::is_at(const HttpRequest& request, Place place) const {
  const std::string_view path = path_of(request);
  if (path.starts_with(options_.base_path)) return false;  // nearly all requests
  const auto route = paths_.find(path);
  return route && route->place == place;
}

std::optional<HttpResponse> Service::look_up(const HttpRequest& request, Asked& asked) const {
  if (!site_.answers_for(host_of(request))) return refuse(421, "misdirected", "this host does not belong to this site");
  auto target = parse_target(request.target);
  if (!target) return answer(fail(std::move(target).error()));
  auto route = paths_.find(target->path);
  if (!route || !offer().has(route->place)) return refuse(404, "not_found", "there is nothing at this path");
  const Place place = route->place;
  asked = {*std::move(target), *std::move(route), find_operation(place, request.method)};
  if (asked.operation) return std::nullopt;
  const std::string allow = allowed_methods(place);
  if (request.method == "OPTIONS" && is_readable(place)) return preflight_answer(allow, is_public(request));
  return refuse(405, "method_not_allowed", "only these methods are allowed here: " + allow, allow);
}

HttpResponse Service::perform(const Asked& asked, const HttpRequest& request, const Caller& caller) const {
  const Collection* collection = asked.route.collection;
  switch (asked.route.place) {
    case Place::overview: return document(overview_of(offer()), request);
    case Place::manifest: return document(manifest_of(offer(), options_.software, options_.other_abilities), request);
    case Place::description: return document(openapi_of(offer()), request);
    case Place::events: return begin_watch(asked.target, request).response;
    case Place::export_of: return first_part(begin_export(asked, request));
    case Place::list_of: return perform_on_list(asked, request, caller);
    case Place::record_of:
      if (asked.operation->method == "PATCH") return answer(patch(*collection, asked.route.id, request, caller));
      return readable(get(*collection, asked.route.id, request), request);
    case Place::key: return answer(key_holder(request));
    case Place::request_code: return answer(sign_in_->request_code(request, counted_client(request, caller)));
    case Place::verify_code: return answer(sign_in_->verify_code(request, counted_client(request, caller)));
  }
  return refuse(404, "not_found", "there is nothing at this path");
}

HttpResponse Service::perform_on_list(const Asked& asked, const HttpRequest& request, const Caller& caller) const {
  const Collection& collection = *asked.route.collection;
  if (asked.operation->method == "GET") return readable(list(collection, asked.target, request), request);
  auto origin = request.headers.get("Origin");
  if (!origin) return refuse(403, "forbidden", "a POST needs an Origin header that names this site's host");
  if (!site_.is_own_origin(*origin, host_of(request), options_.proxies.is_secure(request, caller.address)))
    return refuse(403, "forbidden", "Origin does not match this site's host");
  return answer(create(collection, request, caller));
}

Offer Service::offer() const { return {paths_, options_.limits, feed_ != nullptr, sign_in_ != nullptr}; }

HttpResponse Service::document(JsonObject body, const HttpRequest& request) const {
  HttpResponse response;
  response.status = 200;
  response.headers.add("Content-Type", "application/json");
  response.body = wire::to_text(Json(std::move(body)));
  make_cacheable(request, response, etag_of_text(response.body), Freshness::always_ask);
  return readable(std::move(response), request);
}

Export Service::begin_export(const Asked& asked, const HttpRequest& request) const {
  auto before = page_start(asked.target);
  if (!before) return {readable(refuse(before.error(), {{"parameter", "cursor"}}), request), nullptr};
  HttpResponse response;
  response.status = 200;
  response.headers = {{"Content-Type", "application/x-ndjson"}, {"Cache-Control", "no-store"}};
  return {readable(std::move(response), request),
          std::make_unique<RecordExport>(store_, *asked.route.collection, *before)};
}

HttpResponse Service::first_part(Export exported) const {
  if (!exported.rest) return std::move(exported.response);
  auto part = exported.rest->next();
  if (!part) return answer(fail(std::move(part).error()));
  exported.response.body = *std::move(part);
  return std::move(exported.response);
}

HttpResponse Service::answer(Result<HttpResponse> result) const {
  if (result) return *std::move(result);
  if (result.error().code == ErrorCode::record_too_large)
    return refuse(result.error(), {{"maximum", static_cast<std::int64_t>(kMaxRecordSize)}});
  return response_of(problem_of(result.error()), options_.docs_url);
}

bool Service::is_public(const HttpRequest& request) const { return site_.is_public(host_of(request)); }

HttpResponse Service::readable(Result<HttpResponse> result, const HttpRequest& request) const {
  HttpResponse response = answer(std::move(result));
  if (is_public(request)) allow_reading_from_anywhere(response);
  return response;
}

HttpResponse Service::refuse(const Error& error, JsonObject details) const {
  Problem problem = problem_of(error);
  problem.details = std::move(details);
  return response_of(problem, options_.docs_url);
}

HttpResponse Service::refuse(int status, std::string code, std::string message, std::string allow) const {
  return response_of({status, std::move(code), std::move(message), std::nullopt, {}, std::move(allow)},
                     options_.docs_url);
}

}  // namespace playfs::service
