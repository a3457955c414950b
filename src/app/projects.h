// Creates projects. Blocking; for commands.
#pragma once

#include <string>

#include "model/records.h"
#include "runtime/client_stack.h"

namespace playfs::app {

Result<Record> create_project(runtime::ClientStack& stack, const std::string& name);

}  // namespace playfs::app
