// Requests through control files: from the text of a write to a record at the service, and to the text that the file
// then shows.
#pragma once

#include <string>
#include <vector>

#include "model/json.h"
#include "vfs/attempt.h"

namespace playfs::vfs {

class Mount;

/// What a control file takes.
struct Form {
  struct Field {
    const char* name;
    const char* meaning;  ///< with the allowed values, for whoever reads the file
  };
  const char* plain;  ///< the field that plain text is, and that JSON has to have
  std::vector<Field> fields;
  bool others = false;  ///< the service takes any others as well
  const char* example;  ///< JSON
};

/// What the file says before it was used.
std::string help_document(const Form& form);

/// The fields that were written: a JSON object, or plain text, which is taken for the field `plain` (less its last
/// line break).
Result<JsonObject> request_body(const std::string& text, const Form& form);
/// The same without asking for `plain`.
Status check_fields(const JsonObject& body, const Form& form);

/// Creates the record, once an operation, and answers it as the service returned it, once the kernel knows that
/// listings have changed.
Attempt<Record> create_record(Mount& mount, const OperationPtr& op, const std::string& collection,
                              const JsonObject& body);

/// The author, where the body names none.
void set_default_agent(const Mount& mount, JsonObject& body);

}  // namespace playfs::vfs
