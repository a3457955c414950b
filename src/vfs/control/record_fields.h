// Validates the fields of records, whether they are sent through a form or through the record's own file.
//
// Pure functions for any thread, except check_parent(), which may fetch the parent.
#pragma once

#include <string>

#include "model/records.h"
#include "vfs/async.h"

namespace playfs::vfs {

class Mount;

/// Checks a message's fields, and adds those left out; mentions are taken from the text.
Status complete_message(JsonObject& message);
/// Refuses a `parent` that is not a message of the thread; an empty one is the thread itself.
Async<void> check_parent(Mount& mount, OperationPtr op, std::string parent, std::string thread);

/// Checks the changed fields of a record. Agents, spaces and projects may have any field; other records may not get
/// unknown fields, nor lose those without which they cannot be read.
Status check_change(const std::string& collection, const Record& before, JsonObject& changed);
/// Adds the new mentions to `changed` if a message's text changes and the caller did not set them.
void add_mentions(const Record& before, JsonObject& changed);

}  // namespace playfs::vfs
