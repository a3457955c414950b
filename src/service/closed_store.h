// Whether a store may be written to: the value `closed` of its site, which each write checks in its own transaction. So
// no write is acknowledged that a move to another store (store_copy.h) would leave behind. Pure.
#pragma once

#include <chrono>
#include <string_view>

#include "base/result.h"

namespace playfs::service {

inline constexpr std::string_view kOpenStore;
/// The store was moved to another one, or is being moved: it can be read, but not written to.
inline constexpr std::string_view kMovedStore = "moved";
/// Another store is being moved here: nobody may use it yet.
inline constexpr std::string_view kUnfinishedStore = "unfinished";

/// The error of a write. A client that retries after a while may reach the new store.
inline Error closed_for_writing() {
  Error error{ErrorCode::busy, "the store is closed for writing: it was moved to another one, or is just being moved",
              "serve the new store; to write this one again: playfs serve reopen --store STORE"};
  error.retry_after = std::chrono::seconds(5);
  return error;
}

/// Errors: busy for an unfinished copy, which must not be opened.
inline Status require_finished(std::string_view closed) {
  if (closed != kUnfinishedStore) return {};
  return fail(ErrorCode::busy, "the store is a copy that is not finished", "playfs serve copy FROM TO, once more");
}

/// The error if the state to be changed is not the expected one.
inline Error changed_by_another() {
  return {ErrorCode::busy, "the store was opened or closed by somebody else meanwhile"};
}

}  // namespace playfs::service
