// Answers compressed on the way out, for clients that ask for it. Pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/http.h"
#include "http/answer.h"

namespace playfs::http {

/// Whether an Accept-Encoding header takes gzip ("gzip", "*", with any q above 0).
bool accepts_gzip(std::string_view accept_encoding);

/// Calls `handler` and compresses its answer where the client takes gzip and it is text worth the effort. An entity tag
/// names one sequence of bytes, so the compressed form has a tag of its own, made from the handler's, and the handler
/// sees its own tags only.
/// What is read while it is sent goes out as it is.
Answer compressed(const HttpRequest& request, const std::function<Answer(const HttpRequest&)>& handler);

/// nullopt when memory is out.
std::optional<std::string> gzip(std::string_view text);

}  // namespace playfs::http
