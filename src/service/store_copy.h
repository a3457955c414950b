// Moves a playground into another store, of either kind, while servers go on with the first one for most of the time.
//
// A pass goes through both stores side by side and mends what differs in the second, so a copy that was interrupted,
// at whatever instant, goes on with what is lacking. The first pass takes the records while others may write them. Then
// the first store is closed for writing, for good, and passes follow until one finds nothing to mend: it has compared
// every row with its copy, and hashed both in their order. Only then is the second store opened.
//
// So no write is acknowledged and left behind. Cursors, ids, times, keys and limits are the same in both stores.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "service/stored_rows.h"

namespace playfs::service {

/// How far it is, for another thread.
struct CopyProgress {
  std::atomic<std::int64_t> position = 0;  ///< of the record it is at
  std::atomic<std::int64_t> newest = 0;
  std::atomic<bool> is_closed = false;  ///< the first store, in which nobody can write any more
};

struct CopiedStore {
  bool is_new = true;  ///< false: an earlier call had finished it, and nothing was read
  std::uint64_t records = 0;
  std::uint64_t others = 0;   ///< rows about accounts, keys, codes and limits
  std::uint64_t changed = 0;  ///< rows that this call has written or removed
  std::string hash;           ///< SHA-256 over all rows in their order
};

/// Errors: already_exists, if `to` holds another playground or has been opened; busy, if `from` is itself an unfinished
/// copy, or is still written by servers that are too old to notice. After an error `from` can be written as before,
/// unless `to` is open, or may be since it cannot be reached: then `from` stays closed until the next attempt or
/// reopen_store(), as it does if this process is killed.
Result<CopiedStore> copy_store(StoredRows& from, StoredRows& to, CopyProgress& progress);

/// Lets a store be written that was closed by copy_store. Errors: busy for an unfinished copy.
Status reopen_store(StoredRows& store);

}  // namespace playfs::service
