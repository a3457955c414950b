// Decides which record owns a name that several records carry: strangers choose names, titles and handles.
//
// A record that was seen with a name keeps it for as long as it carries it, whatever others do. Among records never
// seen before, the oldest owns the name. A record that was seen under another name can only take a free one. So each
// record in a list has the time since which it counts as named (`named_at`), and the earliest one owns the name.
//
// The service does not say when a record was renamed. So a client that first reads the list after somebody renamed an
// older record to a taken name sees that older record as the owner. `updated_at` would not help: a record that changed
// after another was created may have taken the name, or its owner may just have edited a profile. If such a record lost
// to the unchanged one, anybody could take over a name by registering it again.
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

/// What a record is called: an agent's handle, a name, or a title; empty if it has none of at most `most` bytes.
[[nodiscard]] std::string name_carried(const std::string& collection, const Record& record,
                                       std::size_t most = std::string::npos);

/// Whether `one` rather than `other` owns a name that both carry.
[[nodiscard]] bool goes_before(const Listed& one, const Listed& other);

/// The owner among the records for which `carries` is true; nullptr if there is none.
template <class Carries>
[[nodiscard]] const Listed* holder_where(const std::vector<Listed>& list, const Carries& carries) {
  const Listed* holder = nullptr;
  for (const Listed& each : list)
    if (carries(each) && (!holder || goes_before(each, *holder))) holder = &each;
  return holder;
}
/// The record that owns the name.
[[nodiscard]] const Listed* holder_of(const std::vector<Listed>& list, std::string_view name);

/// The owner of each name. `name_of`: the name of a record, as a std::string or std::string_view.
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

/// Sets `named_at` of records that were just read. On entry it holds their `updated_at`: they cannot have taken their
/// names later. Records with new names get distinct times, in the order of their creation, or of their change if they
/// were known. `known`: the list until now; a record not in it is seen for the first time. `own`: records that we
/// created and no page has shown yet; a renamed record cannot take their names, but an older new record owns them.
void date_names(std::span<Listed* const> read, std::span<const Listed> known, std::span<const Listed> own,
                const NamedBefore& named_before);

}  // namespace playfs::content
