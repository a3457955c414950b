// Requests through control files: parsing what was written, creating records at the service, and rendering what the
// file then shows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/json.h"
#include "vfs/attempt.h"
#include "vfs/control/request_journal.h"
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
  /// The file in which what was sent can be corrected, for forms whose requests are public and cannot be withdrawn.
  const char* corrected = nullptr;
};

/// What the file shows before its first use.
std::string help_document(const Form& form);

/// The fields of a request: a JSON object, or plain text as the field `plain` (without its last line break).
Result<JsonObject> request_body(const std::string& text, const Form& form);
/// Rejects unknown fields, without requiring `plain`.
Status check_fields(const JsonObject& body, const Form& form);

/// Removes "dry_run" from the body, and returns its value.
Result<bool> take_dry_run(JsonObject& body);
/// Makes the member a list of texts, if it is there: a single text stands for a list of one.
Status make_list(JsonObject& body, std::string_view name);

/// Creates the record once, even if the request is repeated. Returns the service's record, after the kernel's listings
/// were invalidated. With "dry_run" in the body, says what would be sent. `path`: the control file's. `thread_title`:
/// by which that path led to a message's thread; empty: it has the thread's id.
Async<RequestAnswer> create_record(Mount& mount, OperationPtr op, std::string path, std::string collection,
                                   JsonObject body, std::string thread_title = {});
/// Creates a thread and its first message. If the message fails, the thread exists, and the same request again sends
/// only the message.
Async<RequestAnswer> create_thread(Mount& mount, OperationPtr op, std::string path, JsonObject thread,
                                   JsonObject message);
/// Sets the author if the body names none.
void set_default_agent(const Mount& mount, JsonObject& body);

}  // namespace playfs::vfs
