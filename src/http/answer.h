// What a handler returns to the listener: a whole response, one whose body is read while it is sent, or one whose body
// goes on for as long as the client listens. Values that can be moved between threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  /// The size of the whole body, in bytes; nullopt if unknown.
  [[nodiscard]] virtual std::optional<std::uint64_t> size() const = 0;
  /// The next bytes, some kilobytes; empty at the end. May wait for a disk; must not throw.
  virtual Result<std::string> next() = 0;
};

/// The rest of a body without an end: texts that others produce, one at a time, each when the client has taken the one
/// before. Used on the listener's thread; destroyed when the client is gone.
class LiveBody {
 public:
  using Text = std::shared_ptr<const std::string>;  ///< the same for all clients that get it
  virtual ~LiveBody() = default;
  /// Begins. `take` may be called on any thread, and once more after this was destroyed; it does not block.
  virtual void start(std::function<void(const Text&)> take) = 0;
  /// Asks for the text after the one that was taken. Must not block.
  virtual void more() = 0;
};

struct Answer {
  Answer() = default;
  Answer(HttpResponse whole) : response(std::move(whole)) {}  // NOLINT(google-explicit-constructor): most are whole

  HttpResponse response;
  std::unique_ptr<BodySource> source;  ///< the body, unless it is `response.body`
  std::unique_ptr<LiveBody> live;      ///< what follows `response.body`
  std::string tag;                     ///< the entity tag of such a body

  /// The size of the body, in bytes, if known.
  [[nodiscard]] std::optional<std::uint64_t> size() const { return source ? source->size() : response.body.size(); }
};

}  // namespace playfs::http
