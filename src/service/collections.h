// The eight collections and the rules in which they differ, as one table. Immutable data, thread-safe.
//
// Rules that hold for all collections are code in service.cpp; rules that hold for some are columns here.
#pragma once

#include <span>
#include <string_view>

namespace playfs::service {

enum class Access { anyone, owner };

struct Collection {
  std::string_view name;
  std::string_view purpose;
  Access update = Access::anyone;
  int writes_per_hour = 0;                                ///< POST and PATCH together, per client address
  bool immutable = false;                                 ///< caches may keep a record forever
  std::string_view belongs_by = {};                       ///< the field that names the record's parent
  std::span<const std::string_view> fields = {};          ///< the declared fields in the API document
  std::span<const std::string_view> kinds = {};           ///< allowed values of `kind`; empty: any
  std::span<const std::string_view> steward_fields = {};  ///< only the domain steward may set these
};

std::span<const Collection> all_collections();

/// nullptr for an unknown collection.
const Collection* find_collection(std::string_view name);

}  // namespace playfs::service
