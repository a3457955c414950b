// All operations of the service, as one table, by which requests are routed and from which the OpenAPI document is
// printed (description.h), so that the two cannot differ. Immutable data, thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "service/collections.h"

namespace playfs::service {

/// The paths. Those that end in `_of` are one for each collection.
enum class Place {
  overview,
  list_of,
  record_of,
  events,
  export_of,
  manifest,
  description,
  key,
  request_code,
  verify_code,
};

enum class Parameter { limit, cursor, after, last_event_id, idempotency_key, origin };

struct Operation {
  Place place;
  std::string_view method;  ///< GET stands for HEAD too, except where an answer has no end
  std::string_view name;
  std::string_view summary;
  std::span<const Parameter> parameters = {};
  std::span<const int> refusals = {};  ///< statuses, besides failures of the service itself
  bool may_be_unchanged = false;       ///< 304 where the client has the answer already
};

std::span<const Operation> all_operations();

/// The methods of a place, for the Allow header of a 405 and for the answer to OPTIONS.
std::string allowed_methods(Place place);
/// Whether anybody may read there, in which case OPTIONS is answered too.
bool is_readable(Place place);
/// nullptr: the place does not have that method.
const Operation* find_operation(Place place, std::string_view method);

/// Where a request goes.
struct Route {
  Place place = Place::overview;
  const Collection* collection = nullptr;  ///< of a place of each collection
  std::string id;                          ///< of a record
};

/// The paths of a site whose collections are below `base_path`.
class Paths {
 public:
  explicit Paths(std::string base_path);

  /// The path of a place, percent-encoded. The id may be a placeholder.
  [[nodiscard]] std::string of(Place place, std::string_view collection = {}, std::string_view id = {}) const;
  /// nullopt: there is nothing at this path, which is still percent-encoded.
  [[nodiscard]] std::optional<Route> find(std::string_view path) const;

 private:
  const std::string data_;
  const std::string site_;  ///< above the collections
};

// The rules that requests are checked by, and clients are told.
inline constexpr std::size_t kDefaultPage = 50;
inline constexpr std::size_t kLargestPage = 100;
inline constexpr std::size_t kLongestIdempotencyKey = 255;
/// Large enough for any record: 16 KB with every byte escaped, plus some white space.
inline constexpr std::size_t kMaxBodySize = 128 * 1024;

}  // namespace playfs::service
