// Requests through control files: parsing what was written, creating a record at the service, and rendering what the
// file then shows.
#pragma once

#include <string>
#include <vector>

#include "model/json.h"
#include "vfs/attempt.h"
#include "vfs/control/request_text.h"

namespace playfs::vfs {

class Mount;

/// What a control file accepts.
struct Form {
  struct Field {
    const char* name;
    const char* meaning;  ///< for readers of the file; includes the allowed values
  };
  const char* plain;  ///< the field that plain text is stored in; required in JSON
  std::vector<Field> fields;
  bool others = false;  ///< the service accepts any other field, too
  const char* example;  ///< JSON
};

/// What the file shows before its first use.
std::string help_document(const Form& form);

/// The fields of a request: a JSON object, or plain text as the field `plain` (without its last line break).
Result<JsonObject> request_body(const std::string& text, const Form& form);
/// Rejects unknown fields, without requiring `plain`.
Status check_fields(const JsonObject& body, const Form& form);

/// Creates the record. Returns it as the service did, after the kernel's listings were invalidated.
Async<RequestAnswer> create_record(Mount& mount, OperationPtr op, std::string collection, JsonObject body);

/// Sets the author if the body names none.
void set_default_agent(const Mount& mount, JsonObject& body);

}  // namespace playfs::vfs
