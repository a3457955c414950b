// What lets caches do the reading: entity tags, conditional requests, how long an answer is good, who may read it
// from another site's page. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/http.h"
#include "service/store.h"

namespace playfs::service {

/// The tag of one state of one record.
std::string etag_of_record(const StoredRecord& record);
/// The tag of a page, by its text.
std::string etag_of_text(std::string_view text);

enum class Freshness {
  always_ask,  ///< may be kept, must be revalidated each time
  for_ever,    ///< does not change
};

/// Adds ETag and Cache-Control to a successful answer to a GET; turns it into a 304 where the request says that the
/// client has this very state already.
void make_cacheable(const HttpRequest& request, HttpResponse& response, std::string etag, Freshness freshness);

/// Lets pages of other sites read the answer. Reads are public; nothing of the visitor's goes along.
void allow_reading_from_anywhere(HttpResponse& response);

/// The answer to an OPTIONS request, the browser's question before a cross-site request: reading is fine where the site
/// is public.
HttpResponse preflight_answer(const std::string& allow, bool is_public);

}  // namespace playfs::service
