#include "service/problem.h"

#include <utility>

#include "base/log.h"
#include "wire/json.h"

namespace playfs::service {

namespace {
struct Answer {
  int status;
  std::string_view code;
  bool tell;  // whether the caller may see the message
};

Answer answer_to(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found: return {404, "not_found", true};
    case ErrorCode::permission_denied:
    case ErrorCode::not_permitted:
    case ErrorCode::read_only: return {403, "forbidden", true};
    case ErrorCode::unauthorized: return {401, "unauthorized", true};
    case ErrorCode::record_too_large:
    case ErrorCode::file_too_big: return {413, "record_too_large", true};
    case ErrorCode::rate_limited: return {429, "rate_limited", true};
    case ErrorCode::conflict:
    case ErrorCode::already_exists: return {409, "conflict", true};
    case ErrorCode::invalid_argument:
    case ErrorCode::protocol:  // the request's JSON: the service parses no other
    case ErrorCode::refused_input:
    case ErrorCode::name_too_long:
    case ErrorCode::out_of_range: return {400, "invalid_request", true};
    case ErrorCode::busy:
    case ErrorCode::timed_out:
    case ErrorCode::interrupted: return {503, "unavailable", false};
    case ErrorCode::no_space:
    case ErrorCode::quota_exceeded: return {507, "out_of_space", false};
    case ErrorCode::not_supported: return {501, "not_supported", true};
    case ErrorCode::not_a_directory:
    case ErrorCode::is_a_directory:
    case ErrorCode::not_empty:
    case ErrorCode::no_attribute:
    case ErrorCode::too_many_links:
    case ErrorCode::loop:
    case ErrorCode::cross_device:
    case ErrorCode::no_data:
    case ErrorCode::stale:
    case ErrorCode::unreachable:
    case ErrorCode::offline:
    case ErrorCode::corrupt:
    case ErrorCode::io:
    case ErrorCode::internal: return {500, "internal", false};
  }
  return {500, "internal", false};
}
}  // namespace

Problem problem_of(const Error& error) {
  Answer answer = answer_to(error.code);
  Problem problem;
  problem.status = answer.status;
  problem.code = answer.code;
  problem.retry_after = error.retry_after;
  if (answer.tell) {
    problem.message = error.message;
    return problem;
  }
  log_error("answered " + std::to_string(answer.status) + ": " + error.message);
  if (answer.status == 503) {
    problem.message = "the service is busy; try again";
    if (!problem.retry_after) problem.retry_after = std::chrono::seconds(1);
  } else if (answer.status == 507) {
    problem.message = "the service is out of disk space";
  } else {
    problem.message = "the service failed; see its log";
  }
  return problem;
}

HttpResponse response_of(const Problem& problem, const std::string& docs_url) {
  JsonObject body{{"error", reason_phrase(problem.status)}, {"code", problem.code}, {"message", problem.message}};
  HttpResponse response;
  response.status = problem.status;
  response.headers.add("Content-Type", "application/json");
  response.headers.add("Cache-Control", "no-store");
  if (problem.retry_after) {
    body.append("retry_after", static_cast<std::int64_t>(problem.retry_after->count()));
    response.headers.add("Retry-After", std::to_string(problem.retry_after->count()));
  }
  if (!problem.details.empty()) body.append("details", problem.details);
  if (!docs_url.empty()) body.append("docs_url", docs_url);
  if (problem.status == 401) response.headers.add("WWW-Authenticate", "Bearer");
  if (!problem.allow.empty()) response.headers.add("Allow", problem.allow);
  response.body = wire::to_text(Json(std::move(body)));
  return response;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 507: return "Insufficient Storage";
    default: return "Error";
  }
}

}  // namespace playfs::service
