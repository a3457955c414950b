// How long a service asks its client to wait. Pure function.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/http.h"

namespace playfs::remote {

/// The seconds until Retry-After, which may be a date. Dates count from the service's own Date header if present, since
/// our clock may be off. nullopt if there is no such header; anything else in it is returned as it is.
std::optional<std::string> retry_after_of(const HttpResponse& response, const Clock& clock);

}  // namespace playfs::remote
