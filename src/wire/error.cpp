// Decodes the service's error object, for any status.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/text.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::wire {

namespace {

constexpr std::size_t kMaxMessage = 500;
// The longest single wait; also keeps time arithmetic in range.
constexpr std::chrono::seconds kLongestWait = std::chrono::hours(24);

ErrorCode code_for(int status, std::string_view remote_code) {
  if (status == 429 || remote_code == "rate_limited") return ErrorCode::rate_limited;
  if (status >= 500) return status == 504 ? ErrorCode::timed_out : ErrorCode::unreachable;
  if (remote_code == "forbidden") return ErrorCode::permission_denied;
  if (remote_code == "not_found") return ErrorCode::not_found;
  if (remote_code == "record_too_large") return ErrorCode::record_too_large;
  switch (status) {
    case 401: return ErrorCode::unauthorized;
    case 403: return ErrorCode::permission_denied;
    case 404:
    case 410: return ErrorCode::not_found;
    case 408: return ErrorCode::timed_out;
    case 413: return ErrorCode::record_too_large;
  }
  return status >= 400 ? ErrorCode::invalid_argument : ErrorCode::protocol;
}

std::string_view words_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::rate_limited: return "too many requests";
    case ErrorCode::unreachable:
    case ErrorCode::timed_out: return "the service is unavailable";
    case ErrorCode::permission_denied: return "only the owner may do this";
    case ErrorCode::unauthorized: return "not signed in, or the key is no longer valid";
    case ErrorCode::not_found: return "no such record";
    case ErrorCode::record_too_large: return "the record is too large for the service";
    case ErrorCode::invalid_argument: return "the service rejected the request";
    default: return "unexpected response";
  }
}

/// One printable line of at most kMaxMessage bytes before escaping.
std::string printable(std::string_view text) {
  text = text.substr(0, kMaxMessage);
  while (!text.empty() && !is_valid_utf8(text)) text.remove_suffix(1);  // the cut may have split a character
  return escape_for_terminal(text);
}

std::optional<std::chrono::seconds> read_wait(std::string_view text) {
  double seconds = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0)) return std::nullopt;
  if (seconds >= static_cast<double>(kLongestWait.count())) return kLongestWait;
  auto whole = static_cast<std::int64_t>(seconds);
  return std::chrono::seconds(whole < seconds ? whole + 1 : whole);  // never earlier than requested
}

std::optional<std::chrono::seconds> read_wait(const Json* json) {
  if (!json) return std::nullopt;
  if (json->number()) return read_wait(json->number()->text);
  return json->string() ? read_wait(*json->string()) : std::nullopt;
}

}  // namespace

Error decode_error(int http_status, std::string_view body, std::optional<std::string_view> retry_after_header) {
  JsonObject fields;
  auto json = parse_answer(body, {.document_size = 64 << 10, .depth = 16, .values = 1000, .string_size = 16 << 10});
  if (json && json->object()) fields = *json->object();
  auto text = [&](std::string_view name) -> std::string {
    const Json* value = fields.find(name);
    return value && value->string() ? *value->string() : std::string();
  };

  Error error;
  error.http_status = http_status;
  error.remote_code = printable(text("code"));
  error.code = code_for(http_status, error.remote_code);
  std::string said = printable(text("message"));
  if (said.empty()) said = printable(text("error"));
  error.message = fmt::format("{} (HTTP {}{}{})", words_for(error.code), http_status, said.empty() ? "" : ": ", said);
  if (error.code == ErrorCode::unauthorized) error.hint = "playfs login";
  if (auto docs = printable(text("docs_url")); !docs.empty())
    error.hint += (error.hint.empty() ? "see " : "; see ") + docs;
  error.retry_after = read_wait(fields.find("retry_after"));
  if (!error.retry_after && retry_after_header) error.retry_after = read_wait(*retry_after_header);
  return error;
}

}  // namespace playfs::wire
