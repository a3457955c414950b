// Error answers: an HTTP status and the API's error object. Pure values.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/http.h"
#include "base/result.h"
#include "model/json.h"

namespace playfs::service {

struct Problem {
  int status = 500;
  std::string code;     ///< for programs: "rate_limited", "forbidden", "not_found", "record_too_large" …
  std::string message;  ///< for people: what is wrong and what to do
  std::optional<std::chrono::seconds> retry_after;
  JsonObject details;  ///< for programs: what exactly is wrong; left out when empty
  std::string allow;   ///< the Allow header of a 405; empty: none
};

/// The only place that maps an ErrorCode to an HTTP status. Server-side errors (a broken disk, a bug) do not reveal
/// their cause to the caller.
Problem problem_of(const Error& error);

/// Adds `docs_url` to the error object unless it is empty.
HttpResponse response_of(const Problem& problem, const std::string& docs_url = {});

/// "Not Found" for 404; the `error` member of the error object.
std::string_view reason_phrase(int status);

}  // namespace playfs::service
