// Requests through control files: from the text of a write to a record at the service, and to the text that the file
// then shows.
#pragma once

#include <string>

#include "model/json.h"
#include "vfs/attempt.h"

namespace playfs::vfs {

class Mount;

/// The fields that were written: a JSON object, or plain text, which is taken for the field `plain` (less its last
/// line break).
Result<JsonObject> request_body(const std::string& text, const char* plain);

/// Creates the record, once an operation, and answers it as the service returned it.
Attempt<Record> create_record(Mount& mount, const OperationPtr& op, const std::string& collection,
                              const JsonObject& body);

/// The author, where the body names none.
void set_default_agent(const Mount& mount, JsonObject& body);

}  // namespace playfs::vfs
