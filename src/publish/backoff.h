// How long a publication backs off after an error. A pure function.
#pragma once

#include <chrono>
#include <optional>

#include "base/result.h"

namespace playfs::publish {

/// The backoff after the `streak`-th error in a row, counted from 1. Not shorter than the service requested, up to a
/// quarter of an hour.
std::chrono::milliseconds backoff_after(const Error& error, int streak, std::chrono::milliseconds first,
                                        std::chrono::milliseconds longest);

}  // namespace playfs::publish
