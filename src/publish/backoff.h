// Which errors of a publication time may cure, and how long it backs off. Pure functions.
#pragma once

#include <chrono>
#include <optional>

#include "base/result.h"

namespace playfs::publish {

/// Whether repeating it with the same bytes may succeed. False: the commit has failed. A response that makes no sense
/// counts as curable, since it leaves open whether the request was carried out.
bool may_heal(ErrorCode code);

/// The backoff after the `streak`-th error in a row, counted from 1. Not shorter than the service requested, up to a
/// quarter of an hour.
std::chrono::milliseconds backoff_after(const Error& error, int streak, std::chrono::milliseconds first,
                                        std::chrono::milliseconds longest);

}  // namespace playfs::publish
