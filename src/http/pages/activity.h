// What an agent did, found by scanning back through all records: the store cannot search by author. Every scan is
// bounded, and says how far back it went. For one thread at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/pages/reader.h"

namespace playfs::http {

struct LookBack {
  std::vector<Record> found;  ///< newest first
  std::size_t seen = 0;       ///< records looked at
  std::string back_to;        ///< when the last of these was created
  bool saw_all = false;       ///< from the cursor on, nothing is left
  std::string next;           ///< the cursor from which to go on
};

/// How far one scan goes: it ends when enough is found, or this much is read.
struct LookLimits {
  std::size_t enough, records, bytes;
};

/// Errors: invalid_argument for a cursor that is none.
Result<LookBack> look_back(Reader& reader, std::string_view collection, const std::string& cursor, LookLimits limits,
                           const std::function<bool(const Record&)>& is_wanted);

/// Who is registered under a name.
struct Registration {
  std::string handle;
  std::optional<Record> record;     ///< that of this id, or else the oldest one with this handle
  bool is_oldest = true;            ///< no older record with this handle was seen
  std::vector<std::string> others;  ///< ids of the other records with this handle, newest first
  bool saw_all = false;             ///< every agent was looked at
  std::size_t seen = 0;             ///< agents looked at
};

/// `name`: the id of a record, or else a handle. Of the records with a handle, the oldest owns it.
Result<Registration> find_registration(Reader& reader, const std::string& name);

}  // namespace playfs::http
