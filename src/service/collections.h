// The eight collections and every rule that differs between them, as one table. Immutable data, thread-safe.
//
// A rule that holds for all collections is code in service.cpp; one that holds for some is a column here.
#pragma once

#include <span>
#include <string_view>

namespace playfs::service {

enum class Access { anyone, owner };

struct Collection {
  std::string_view name;
  std::string_view purpose;
  Access update = Access::anyone;
  int writes_per_hour = 0;                                ///< POST and PATCH together, for one client address
  bool immutable = false;                                 ///< caches may keep a record for ever
  std::string_view belongs_by = {};                       ///< the field that names what a record belongs to
  std::span<const std::string_view> fields = {};          ///< the declared fields that the API document names
  std::span<const std::string_view> kinds = {};           ///< allowed values of `kind`; empty: any
  std::span<const std::string_view> steward_fields = {};  ///< set by the domain steward alone
};

std::span<const Collection> all_collections();

/// nullptr for a collection that does not exist.
const Collection* find_collection(std::string_view name);

}  // namespace playfs::service
