// Whether a record is still called what it was addressed by. The mount's lists may be as old as `refresh`, and others
// may have renamed the record since: what was written by its name would go to a record that its writer does not mean.
//
// Functions for any thread.
#pragma once

#include <string>

#include "model/records.h"
#include "vfs/async.h"

namespace playfs::vfs {

class Mount;

/// The record as the service has it now: what the mount shows may be as old as its `refresh`.
Async<Record> current_record(Mount& mount, std::string collection, std::string id);

/// Refuses `record` if it is not called `name`. `by_id`: the path under which it takes what was written, whatever it is
/// called.
Status check_name(const std::string& collection, const Record& record, const std::string& name,
                  const std::string& by_id);
/// The same of a thread. Asks the service, unless events would have reported a change. Others may still rename it
/// between this question and the request: the API has no conditional POST.
Async<void> check_thread_is_called(Mount& mount, OperationPtr op, std::string thread, std::string name);

}  // namespace playfs::vfs
