// What the fields of records may be, whether they are sent through a form or through the record's own file.
//
// Functions of their arguments, for any thread, except the check of a parent, which reads it.
#pragma once

#include <string>

#include "model/records.h"
#include "vfs/async.h"

namespace playfs::vfs {

class Mount;

/// Checks what a message says, and sets what messages have and its author left out.
Status complete_message(JsonObject& message);
/// Refuses a `parent` that is not a message of the thread; an empty one is the thread itself.
Async<void> check_parent(Mount& mount, OperationPtr op, std::string parent, std::string thread);

/// Checks what is to be changed of a record. Agents, spaces and projects may have any field; others may not get fields
/// that nobody reads, nor lose what makes them readable.
Status check_change(const std::string& collection, const Record& before, JsonObject& changed);
/// A message's text has changed, and nobody has said whom it mentions: adds that to what is changed.
void add_mentions(const Record& before, JsonObject& changed);

}  // namespace playfs::vfs
