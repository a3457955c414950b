// Errors as values. Every fallible operation in playfs returns Result<T>; an exception is a bug.
//
// The whole program shares one ErrorCode. What a code means is in one table, traits_of(). Three exhaustive switches map
// it to other worlds: to errno in fuse/, to HTTP status in service/ and to the exit code in app/. The way back is
// error_from_errno() here and wire's decode_error(). All types here are plain values and may be copied between threads.
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
  // The request.
  not_found,
  already_exists,
  not_a_directory,
  is_a_directory,
  not_empty,
  read_only,  // write to an immutable tree
  invalid_argument,
  name_too_long,
  not_permitted,      // never allowed here, for anyone (EPERM)
  permission_denied,  // not allowed for this caller: 403, or local permissions (EACCES)
  unauthorized,       // 401: not signed in, or the key is no longer valid
  busy,               // blocked by something that must finish first
  conflict,           // blocked by something that the user must resolve first (EBUSY)
  stale,              // the open file was replaced: reopen it (ESTALE)
  not_supported,
  no_attribute,  // no such extended attribute
  too_many_links,
  loop,
  cross_device,  // rename or link between unrelated trees (EXDEV)
  no_data,       // SEEK_DATA or SEEK_HOLE past the last byte (ENXIO)
  // Size and space.
  record_too_large,  // the service rejected a record as too large
  file_too_big,      // more than the service can store; nothing was sent
  no_space,
  quota_exceeded,
  out_of_range,  // the caller's buffer is too small for the result (ERANGE)
  // The network.
  rate_limited,
  unreachable,
  timed_out,
  interrupted,
  offline,   // not available locally, and the mount may not connect
  protocol,  // a malformed or unexpected response
  // Trust in data.
  corrupt,        // bytes do not match their hash or size
  refused_input,  // data from the service that playfs will not act on (a path, a size, a cycle)
  // playfs itself.
  io,
  internal,  // last: code_named() counts on it
};

/// How far the request behind an error got.
enum class Reached {
  nobody,    // it was not sent: the mount may not connect, or there was no connection
  given_up,  // the caller no longer waits; what the service did is unknown
  silence,   // no answer
  no_use,    // an answer that decides nothing: a rate limit, or a proxy's error page
  decision,  // a final answer; also every error that did not come from the service
};

/// Whether the same request may succeed later with no change on our side.
enum class Later {
  no,
  perhaps,  // nobody knows: playfs tries again where that loses nothing
  yes,
};

struct ErrorTraits {
  std::string_view name;  ///< stable, in snake_case: `code` in `--json` output and `.playfs/errors.ndjson`
  Later later;
  bool recorded;  ///< belongs in `.playfs/errors.ndjson`, since an errno alone does not explain it
  Reached reached;
};

/// The table of all codes.
ErrorTraits traits_of(ErrorCode code);

inline std::string_view name_of(ErrorCode code) { return traits_of(code).name; }
/// The code with that name; `internal` if there is none.
ErrorCode code_named(std::string_view name);
/// Whether it is worth trying again later: `retryable` in `--json` output and in the ioctl.
inline bool is_transient(ErrorCode code) { return traits_of(code).later != Later::no; }
/// Whether the service could not be asked, so that what is already known still serves.
bool is_outage(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message{};                              ///< What failed and why: one line, no trailing full stop.
  std::string hint{};                                 ///< What to do or type next; may be empty.
  std::optional<std::chrono::seconds> retry_after{};  ///< The service's Retry-After, if given.
  int http_status = 0;                                ///< Status of the response behind this error; 0 if none.
  std::string remote_code{};                          ///< `code` of the service's error object, as received.
  bool is_unsent = false;                             ///< The request was certainly not sent, whatever the code says.

  /// The same error with context prepended: "read src/a.c: <message>".
  [[nodiscard]] Error while_doing(std::string_view what) const;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string hint = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(hint)});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

/// How far the request got: as the code says, unless the error knows that it was not sent.
inline Reached reached_of(const Error& error) {
  return error.is_unsent ? Reached::nobody : traits_of(error.code).reached;
}

/// Converts an errno, distinguishing ENOSPC, EDQUOT, ENOENT and the like. REQUIRES: called right after the failing
/// system call, or with its saved errno.
Error error_from_errno(int errnum, std::string_view what);

}  // namespace playfs

// Returns the error of a Result<T> expression, or assigns its value.
#define PLAYFS_CONCAT_INNER(a, b) a##b
#define PLAYFS_CONCAT(a, b) PLAYFS_CONCAT_INNER(a, b)
#define PLAYFS_TRY(declaration, expression) \
  PLAYFS_TRY_INNER(PLAYFS_CONCAT(playfs_try_, __LINE__), declaration, expression)
#define PLAYFS_TRY_INNER(temporary, declaration, expression)           \
  auto temporary = (expression);                                       \
  if (!temporary) return ::playfs::fail(std::move(temporary).error()); \
  declaration = std::move(*temporary)
// The same for a Status, which has no value.
#define PLAYFS_CHECK(expression)                                                                                    \
  do {                                                                                                              \
    if (auto playfs_status = (expression); !playfs_status) return ::playfs::fail(std::move(playfs_status).error()); \
  } while (false)
