// What the report is made of, as it is on this machine. All of these may block, as in a mount that hangs: they are for
// a child process with a time limit. Files of this user are opened without following links, and only if they are plain
// files of this user. No shared state.
#pragma once

#include <string>

#include "app/command_context.h"
#include "app/mounted.h"
#include "base/result.h"
#include "model/json.h"

namespace playfs::app {

/// "distribution" and "release".
Result<Json> system_release();

/// The settings of each layer. A value that is neither a number nor one of a few words is given as its text.
Result<Json> settings_found(const runtime::Io& io, const runtime::Places& places);

/// The ends of the logs: an array of "file", "bytes" and "text", or of "file" and the "error".
Result<Json> ends_of_logs(const runtime::Places& places);

/// "options", and the texts of the mount's control files by their names; of one that cannot be read, its "error".
Result<Json> mount_found(const runtime::Places& places, const runtime::MountEntry& mount);

/// The document that doctor prints.
Result<Json> doctors_document(const CommandContext& context);

/// Files and bytes.
Result<Json> size_of(const std::string& directory);
/// The same of each work tree's stage and queue, as an array.
Result<Json> sizes_of_stages(const runtime::Places& places);

JsonObject error_fields(const Error& error);

}  // namespace playfs::app
