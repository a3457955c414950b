// What a bug report contains: of the program, of this user's mounts and of what is kept on this machine.
//
// Needs no service, and no settings that can be read. Everything that may block is done by children, one after another,
// with a common time limit; what cannot be read is said in its place. For one thread; blocking.
#pragma once

#include <string>
#include <vector>

#include "app/command_context.h"
#include "model/json.h"

namespace playfs::app {

struct CollectedReport {
  JsonObject facts;  ///< one member for each section, as ShownWords allows it
  JsonObject texts;  ///< logs and messages as they are, but for keys; empty unless asked for
};

/// `with_texts` fails if the keys that would have to be taken out cannot be read.
Result<CollectedReport> collect_report(const CommandContext& context, bool with_texts);

}  // namespace playfs::app
