#include "service/conditional.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "base/text.h"

namespace playfs::service {

namespace {

// Part of every tag; bump it when the same record is printed differently.
constexpr int kRepresentation = 1;

/// RFC 9110, 13.1.2: any tag in the list, compared weakly.
bool matches(std::string_view if_none_match, std::string_view etag) {
  if (trim(if_none_match) == "*") return true;
  while (!if_none_match.empty()) {
    auto comma = if_none_match.find(',');
    std::string_view tag = trim(if_none_match.substr(0, comma));
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (tag == etag) return true;
    if_none_match = comma == std::string_view::npos ? std::string_view() : if_none_match.substr(comma + 1);
  }
  return false;
}

}  // namespace

std::string etag_of_record(const StoredRecord& record) {
  return fmt::format("\"{}-{:x}\"", kRepresentation, record.updated_at.nanoseconds / 1000);
}

std::string etag_of_text(std::string_view text) {
  XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("\"{:016x}{:016x}\"", hash.high64, hash.low64);
}

void make_cacheable(const HttpRequest& request, HttpResponse& response, std::string etag, Freshness freshness) {
  response.headers.add("Cache-Control",
                       freshness == Freshness::for_ever ? "public, max-age=31536000, immutable" : "public, no-cache");
  auto known = request.headers.get("If-None-Match");
  if (known && matches(*known, etag)) {
    response.status = 304;
    response.body.clear();
  }
  response.headers.add("ETag", std::move(etag));
}

void allow_reading_from_anywhere(HttpResponse& response) {
  response.headers.add("Access-Control-Allow-Origin", "*");
  response.headers.add("Access-Control-Expose-Headers", "ETag, Retry-After");
}

HttpResponse preflight_answer(const std::string& allow, bool is_public) {
  HttpResponse response;
  response.status = 204;
  response.headers = {{"Allow", allow}};
  if (!is_public) return response;
  allow_reading_from_anywhere(response);
  response.headers.add("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS");
  response.headers.add("Access-Control-Allow-Headers", "If-None-Match");
  response.headers.add("Access-Control-Max-Age", "86400");
  return response;
}

}  // namespace playfs::service
