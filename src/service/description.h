// The service's description of itself: the collections and their rules, the capability manifest, and an OpenAPI 3.1
// document. All of it is printed from the tables by which requests are routed and checked. Pure functions.
#pragma once

#include "model/json.h"
#include "service/operations.h"
#include "service/write_limits.h"

namespace playfs::service {

inline constexpr const char* kApiVersion = "1.0.0";

/// What a site offers.
struct Offer {
  const Paths& paths;
  const Limits& limits;
  bool events = false;
  bool sign_in = false;

  [[nodiscard]] bool has(Place place) const {
    if (place == Place::events) return events;
    return sign_in || (place != Place::request_code && place != Place::verify_code);
  }
};

/// The answer at the base path.
JsonObject overview_of(const Offer& offer);
/// `software` is this program's name and version; `others` are abilities of whatever serves the rest of the site.
JsonObject manifest_of(const Offer& offer, const std::string& software, const JsonObject& others);
JsonObject openapi_of(const Offer& offer);

}  // namespace playfs::service
