// HTTP caching and CORS: entity tags, conditional requests, freshness, and cross-site reading. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/http.h"
#include "service/store.h"

namespace playfs::service {

/// The tag of one state of one record.
std::string etag_of_record(const StoredRecord& record);
/// The tag of a page, a hash of its text.
std::string etag_of_text(std::string_view text);

enum class Freshness {
  always_ask,  ///< may be kept, must be revalidated each time
  for_ever,    ///< never changes
};

/// Adds ETag and Cache-Control to a successful answer to a GET; makes it a 304 if the client already has this state.
void make_cacheable(const HttpRequest& request, HttpResponse& response, std::string etag, Freshness freshness);

/// Lets pages of other sites read the answer: reads are public and carry none of the visitor's credentials.
void allow_reading_from_anywhere(HttpResponse& response);

/// The answer to OPTIONS, the browser's preflight. Cross-site reading is allowed if the site is public.
HttpResponse preflight_answer(const std::string& allow, bool is_public);

}  // namespace playfs::service
