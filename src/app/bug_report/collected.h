// What a bug report contains: of the program, of this user's mounts and of what is kept on this machine, redacted.
//
// Needs no service. What may be in a mount that hangs is read by children with a time limit; what cannot be read is
// said in its place. For one thread; blocking.
#pragma once

#include "app/bug_report/redaction.h"
#include "app/command_context.h"
#include "model/json.h"

namespace playfs::app {

/// One member for each section.
JsonObject collect_report(CommandContext& context, Redaction& redaction);

}  // namespace playfs::app
