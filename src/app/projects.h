// Creates projects. Blocking; for commands.
#pragma once

#include <string>

#include "app/world.h"
#include "model/records.h"

namespace playfs::app {

Result<Record> create_project(World& world, const std::string& name);

}  // namespace playfs::app
