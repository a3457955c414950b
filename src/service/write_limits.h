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
  /// No limits: a playground of one's own.
  static Limits off() { return {}; }
  /// Those of the API document.
  static Limits of_document();
  /// A JSON object of collection names and writes per hour, null for no limit; the document's hold for collections
  /// that it does not name. `window_seconds` is another time than the hour, for trying out how a client bears limits.
  /// Fails with invalid_argument.
  static Result<Limits> parse(std::string_view text);

  /// Writes in any window; nullopt for no limit.
  [[nodiscard]] std::optional<int> writes(const Collection& collection) const;
  [[nodiscard]] std::chrono::seconds window() const { return window_; }

 private:
  std::chrono::seconds window_{3600};
  std::map<std::string_view, int> writes_;  // by the names in the table of collections
};

}  // namespace playfs::service
