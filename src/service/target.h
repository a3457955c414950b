// The path and query of a request. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace playfs::service {

struct Target {
  std::string_view path;  ///< still percent-encoded; refers to the text that was parsed
  std::vector<std::pair<std::string, std::string>> query;

  /// The first parameter of that name.
  [[nodiscard]] std::optional<std::string_view> parameter(std::string_view name) const;
};

/// Errors: invalid_argument for a badly percent-encoded query. `target` must outlive the result.
Result<Target> parse_target(std::string_view target);

/// The decoded segments of `path` below `base`: "/b/projects/x" below "/b" is {"projects", "x"}. nullopt if `path` is
/// not below `base`, or is badly percent-encoded. One trailing slash is ignored.
std::optional<std::vector<std::string>> segments_below(std::string_view base, std::string_view path);

}  // namespace playfs::service
