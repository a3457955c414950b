// Compresses answers for clients that accept it. Pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/http.h"
#include "http/answer.h"

namespace playfs::http {

/// Whether an Accept-Encoding header accepts gzip ("gzip", "*", with any q above 0).
bool accepts_gzip(std::string_view accept_encoding);

/// Calls `handler` and compresses its answer if the client accepts gzip and the body is text of some size. An entity
/// tag names one sequence of bytes, so the compressed form gets its own tag, derived from the handler's, and the
/// handler sees only its own tags. Bodies with a BodySource are not compressed.
Answer compressed(const HttpRequest& request, const std::function<Answer(const HttpRequest&)>& handler);

/// nullopt if out of memory.
std::optional<std::string> gzip(std::string_view text);

}  // namespace playfs::http
