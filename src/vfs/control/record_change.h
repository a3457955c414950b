// Changing a record by writing JSON to the file that shows it.
//
// The fields that differ from what the file showed are sent as a PATCH, so that whoever edits a copy and writes all of
// it back changes only what they edited: what others have changed meanwhile stays. Fields that are left out are kept.
#pragma once

#include <string>

#include "vfs/async.h"
#include "vfs/control/request_text.h"
#include "vfs/shown_text.h"

namespace playfs::vfs {

class Mount;

/// A record as a file shows it.
struct ShownRecord {
  std::string collection, id;
  ShownText text;
  NodeId directory = 0;   ///< where the file is; set by the directory
  std::string name = {};  ///< of the file; likewise
};

/// Answers when the service has the change and the kernel looks the file up anew. Nothing differs: nothing is sent.
Async<RequestAnswer> change_record(Mount& mount, OperationPtr op, ShownRecord shown, std::string text);

/// What a PATCH has to say to make `written` of `shown`, both as files show records. Ignores what only the service sets
/// (id, created_at, updated_at, status).
Result<JsonObject> changed_fields(const std::string& shown, const std::string& written, const std::string& id);

}  // namespace playfs::vfs
