// Who last changed what: for each name at the top of a revision's tree, the newest revision that changed something
// there. Pure except for reading.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "http/pages/reader.h"

namespace playfs::http {

struct LastChange {
  std::string id, agent, message, time;  ///< of the revision
};

/// By name. Names without an entry were last changed in an older revision than one page may read, or in one that cannot
/// be read.
using LastChanges = std::map<std::string, LastChange, std::less<>>;

/// Walks back from `head`. As in `git log -- NAME`, a merge changed only what none of its parents has.
LastChanges last_changes(Reader& reader, const Revision& head);

/// The first name of a path.
std::string top_of(std::string_view path);

}  // namespace playfs::http
