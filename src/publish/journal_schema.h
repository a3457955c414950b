// The tables of the journal's database, and how those of earlier versions become the present ones.
#pragma once

#include <string>

#include "base/result.h"
#include "base/sqlite.h"

namespace playfs::publish {

/// Makes the tables, or brings them up to date, in one transaction. Fails with `not_supported` if a newer version wrote
/// the database at `path`, with `corrupt` if it is not what its version says.
Status bring_up_to_date(Database& database, const std::string& path);

}  // namespace playfs::publish
