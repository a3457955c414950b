// Who has a name, where several records carry it: names, titles and handles are chosen by strangers.
//
// A name that was seen with a record stays with it for as long as the record carries it, whatever others do. Of records
// that were never seen before, the oldest has it. A record that was seen under another name gets a free one only. So
// each record in a list has the time since when it counts as named (`named_at`), and the earliest one has the name.
//
// The service does not tell when a record was renamed. Who sees a list for the first time, after somebody gave a name
// that was taken to an older record, sees that one as the oldest. `updated_at` would not help: that a record has
// changed since another was created may mean that it took the name, or only that its owner edited a profile; if it then
// lost to the unchanged one, anybody could take a name by registering it again.
//
// Pure functions.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "content/types.h"

namespace playfs::content {

/// Whether `one` has a name that both carry.
[[nodiscard]] bool goes_before(const Listed& one, const Listed& other);

/// The record that has what `carries` tells of a record; nullptr if none carries it.
template <class Carries>
[[nodiscard]] const Listed* holder_where(const std::vector<Listed>& list, const Carries& carries) {
  const Listed* holder = nullptr;
  for (const Listed& each : list)
    if (carries(each) && (!holder || goes_before(each, *holder))) holder = &each;
  return holder;
}
/// The record that has the name.
[[nodiscard]] const Listed* holder_of(const std::vector<Listed>& list, std::string_view name);

/// Of each name the record that has it. `name_of`: the name of a record, as a std::string or std::string_view.
template <class NameOf>
[[nodiscard]] auto holders_of(const std::vector<Listed>& list, const NameOf& name_of) {
  std::unordered_map<std::invoke_result_t<NameOf, const Listed&>, const Listed*> holders;
  for (const Listed& each : list) {
    auto [holder, is_first] = holders.try_emplace(name_of(each), &each);
    if (!is_first && goes_before(each, *holder->second)) holder->second = &each;
  }
  return holders;
}

/// When a record took its name, from what is known besides the list; nullopt: unknown.
using NamedBefore = std::function<std::optional<WallTime>(const Listed&)>;

/// Sets `named_at` of records that were just read. Before, it has their `updated_at`: they have not taken their names
/// later. Of those with new names, none gets the time of another: they come in the order in which they were created, or
/// changed if they were known. `known`: the list until now; what is not in it is seen for the first time. `own`: what
/// we created and no page has shown yet; a renamed record takes none of its names, but a new one that is older has
/// them.
void date_names(std::span<Listed* const> read, std::span<const Listed> known, std::span<const Listed> own,
                const NamedBefore& named_before);

}  // namespace playfs::content
