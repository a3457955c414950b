#include "app/left_out.h"

#include <algorithm>

#include "base/shell.h"
#include "vfs/control/control_text.h"

namespace playfs::app {

void LeftOut::add(const std::vector<RefusedEntry>& refused) {
  for (const RefusedEntry& entry : refused) add(entry.path, Error{ErrorCode::refused_input, entry.reason});
}

void LeftOut::tell(Output& out) const {
  for (const auto& [path, why] : entries_) out.note("Left out " + safe(path) + ": " + safe(why.message));
}

Json::Array LeftOut::document() const {
  Json::Array array;
  for (const auto& [path, why] : entries_)
    array.emplace_back(JsonObject{{"path", path}, {"error", vfs::error_json(why)}});
  return array;
}

ExitCode LeftOut::exit_code() const {
  if (entries_.empty()) return ExitCode::done;
  const bool may_come =
      std::any_of(entries_.begin(), entries_.end(), [](const Entry& e) { return is_outage(e.why.code); });
  return may_come ? ExitCode::unreachable : ExitCode::failed;
}

}  // namespace playfs::app
