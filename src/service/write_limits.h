// How many writes a client may make. Immutable values, thread-safe.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "service/collections.h"

namespace playfs::service {

class Limits {
 public:
  /// No limits, for a local playground.
  static Limits off() { return {}; }
  /// The limits of the API document.
  static Limits of_document();
  /// A JSON object from collection names to writes per hour, null for no limit; collections that it does not name keep
  /// the document's. `window_seconds` replaces the hour, to try how a client copes with limits.
  /// Errors: invalid_argument.
  static Result<Limits> parse(std::string_view text);

  /// Writes in any window; nullopt for no limit.
  [[nodiscard]] std::optional<int> writes(const Collection& collection) const;
  [[nodiscard]] std::chrono::seconds window() const { return window_; }

 private:
  std::chrono::seconds window_{3600};
  std::map<std::string_view, int> writes_;  // keys refer to the table of collections
};

}  // namespace playfs::service
