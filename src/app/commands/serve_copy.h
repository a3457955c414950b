// playfs serve copy and reopen: moves a playground between stores.
#pragma once

#include <string>

#include "app/commands/store_place.h"

namespace playfs::app {

Result<ExitCode> copy_playground(CommandContext& context, const std::string& from, const std::string& to);
Result<ExitCode> reopen_playground(CommandContext& context, const StorePlace& place);

}  // namespace playfs::app
