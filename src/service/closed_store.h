// Whether a store may be written: the `closed` of its site, which each write looks at in its own transaction. So
// nothing is acknowledged that a move to another store (store_copy.h) would leave behind. Pure.
#pragma once

#include <chrono>
#include <string_view>

#include "base/result.h"

namespace playfs::service {

inline constexpr std::string_view kOpenStore;
/// It was moved to another store, or is just being moved: it can be read, and not be written.
inline constexpr std::string_view kMovedStore = "moved";
/// Another store is being moved here: nobody may use it yet.
inline constexpr std::string_view kUnfinishedStore = "unfinished";

/// What a write is answered with. Whoever repeats it after a while may find the new store.
inline Error closed_for_writing() {
  Error error{ErrorCode::busy, "the store is closed for writing: it was moved to another one, or is just being moved",
              "serve the new store; to write this one again: playfs serve reopen --store STORE"};
  error.retry_after = std::chrono::seconds(5);
  return error;
}

/// For those who open a store. Errors: busy.
inline Status require_finished(std::string_view closed) {
  if (closed != kUnfinishedStore) return {};
  return fail(ErrorCode::busy, "the store is a copy that is not finished", "playfs serve copy FROM TO, once more");
}

/// For those who change the state themselves.
inline Error changed_by_another() {
  return {ErrorCode::busy, "the store was opened or closed by somebody else meanwhile"};
}

}  // namespace playfs::service
