// Which errors of a publication time may heal, and how long it rests before it goes on. Pure functions.
#pragma once

#include <chrono>
#include <optional>

#include "base/result.h"

namespace playfs::publish {

/// Whether doing the same again, with the same bytes, may succeed. False: the commit has failed for good. An answer
/// that makes no sense belongs to the first kind, since it leaves open whether the request was carried out.
bool may_heal(ErrorCode code);

/// The rest after the `streak`-th error in a row, from 1; not shorter than the service asked for, where that is at most
/// a quarter of an hour.
std::chrono::milliseconds rest_after(const Error& error, int streak, std::chrono::milliseconds first,
                                     std::chrono::milliseconds longest);

}  // namespace playfs::publish
