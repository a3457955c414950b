// Write limits in SQLite, which survive a restart: an exact sliding window, with one row for each write that still
// counts. For the thread that has the connection.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "service/sqlite_connections.h"
#include "service/store.h"

namespace playfs::service {

/// Counts one write against `charge`, or fails with rate_limited and the time until one is free again.
/// REQUIRES: inside a write transaction, which is rolled back if this fails.
Status charge_write(Connection& connection, const Charge& charge, WallTime now);

}  // namespace playfs::service
