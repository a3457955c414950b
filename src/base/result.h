// Errors as values. Every fallible operation of playfs returns Result<T>; exceptions are bugs.
//
// One ErrorCode serves the whole program. It is mapped exhaustively in exactly three places: to errno in
// fuse/, to HTTP status in service/, and to the exit code in app/. All types here are plain values without
// shared mutable state and may be copied between threads.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace playfs {

enum class ErrorCode {
  // What was asked for.
  not_found,
  already_exists,
  not_a_directory,
  is_a_directory,
  not_empty,
  read_only,  // a write in an immutable tree
  invalid_argument,
  name_too_long,
  not_permitted,      // never allowed here, for anyone (EPERM)
  permission_denied,  // this caller may not: 403, or local permissions (EACCES)
  unauthorized,       // 401: not signed in, or the key is no longer valid
  busy,               // something in the way has to end or be resolved first
  stale,              // what the caller has open was replaced: open it again (ESTALE)
  not_supported,
  no_attribute,  // no such extended attribute
  too_many_links,
  loop,
  cross_device,  // a rename or link between trees that share nothing (EXDEV)
  no_data,       // SEEK_DATA or SEEK_HOLE past the last byte (ENXIO)
  // Size and room.
  record_too_large,  // the service refused a record for its size
  file_too_big,      // does not fit what the service can hold; nothing was sent
  no_space,
  quota_exceeded,
  out_of_range,  // a buffer offered by the caller is too small for the answer (ERANGE)
  // The network.
  rate_limited,
  unreachable,
  timed_out,
  interrupted,
  offline,   // not here, and the mount may not connect
  protocol,  // an answer that makes no sense
  // Trust in data.
  corrupt,        // bytes do not match what was promised of them
  refused_input,  // data from the service that playfs will not act on (a path, a size, a cycle)
  // Ourselves.
  io,
  internal,
};

/// The stable snake_case name of a code, as it appears in `--json` output and in `.playfs/errors.ndjson`.
std::string_view name_of(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;                              ///< What failed and why, one line, no trailing full stop.
  std::string hint;                                 ///< The next thing to do or type; may be empty.
  std::optional<std::chrono::seconds> retry_after;  ///< What the service asked for, if it did.
  int http_status = 0;                              ///< Status of the answer behind this error; 0 where there was none.
  std::string remote_code;                          ///< `code` of the service's error object, as received.

  /// The same error with words in front that say what was being done: "read src/a.c: <message>".
  [[nodiscard]] Error while_doing(std::string_view what) const;
};

/// Whether the same request may succeed later without anybody changing anything.
bool is_retryable(ErrorCode code);

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string hint = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(hint), std::nullopt, 0, {}});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

/// An error from errno, with ENOSPC, EDQUOT, ENOENT and the like kept apart.
/// REQUIRES: called right after the failing system call, or with its errno passed on.
Error error_from_errno(int errnum, std::string_view what);

}  // namespace playfs

// Propagates the error of an expression that yields Result<T> and otherwise assigns its value.
#define PLAYFS_CONCAT_INNER(a, b) a##b
#define PLAYFS_CONCAT(a, b) PLAYFS_CONCAT_INNER(a, b)
#define PLAYFS_TRY(declaration, expression) \
  PLAYFS_TRY_INNER(PLAYFS_CONCAT(playfs_try_, __LINE__), declaration, expression)
#define PLAYFS_TRY_INNER(temporary, declaration, expression)           \
  auto temporary = (expression);                                       \
  if (!temporary) return ::playfs::fail(std::move(temporary).error()); \
  declaration = std::move(*temporary)
// The same for a Status, where there is no value.
#define PLAYFS_CHECK(expression)                                                                                    \
  do {                                                                                                              \
    if (auto playfs_status = (expression); !playfs_status) return ::playfs::fail(std::move(playfs_status).error()); \
  } while (false)
