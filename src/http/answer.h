// What a handler returns to the listener: a whole response, or one whose body is read while it is sent. Values that can
// be moved between threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/http.h"
#include "base/result.h"

namespace playfs::http {

/// A body that is not in memory: the listener requests the next piece when the client has taken the previous one. Used
/// by one thread at a time, not always the same.
class BodySource {
 public:
  virtual ~BodySource() = default;
  /// Of the whole body, in bytes.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// The next bytes, some kilobytes; empty at the end. May wait for a disk; must not throw.
  virtual Result<std::string> next() = 0;
};

struct Answer {
  Answer() = default;
  Answer(HttpResponse whole) : response(std::move(whole)) {}  // NOLINT(google-explicit-constructor): most are whole

  HttpResponse response;
  std::unique_ptr<BodySource> source;  ///< the body, unless it is `response.body`
  std::string tag;                     ///< the entity tag of such a body

  /// Of the body, in bytes.
  [[nodiscard]] std::uint64_t size() const { return source ? source->size() : response.body.size(); }
};

}  // namespace playfs::http
