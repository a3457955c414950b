// What `playfs status` says of a clone's directory, beside what is staged in it. Pure.
#pragma once

#include <string>

#include "clone/clone.h"
#include "model/json.h"

namespace playfs::app {

/// Sections to append to the status; "" if all is well.
std::string clone_state_text(const clone::DirectoryState& state);
/// The same as members of the document; `next`, where there is more to do than the stage knows.
void add_clone_state(JsonObject& document, const clone::DirectoryState& state);

}  // namespace playfs::app
