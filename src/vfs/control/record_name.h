// Whether a record is still called what it was addressed by. The mount's lists may be as old as `refresh`, or older if
// events get lost, and others may have renamed the record since: what was written by its name would go to a record that
// its writer does not mean. So the service is asked, each time right before something is sent. Others may still rename
// the record between this question and the request: the API has no conditional POST or PATCH.
//
// Functions for any thread.
#pragma once

#include <string>

#include "content/site.h"
#include "model/records.h"
#include "vfs/async.h"

namespace playfs::vfs {

class Mount;

/// A record that was addressed by its name, and the path that reaches it whatever it is called.
struct Addressed {
  std::string collection, id, name, by_id;
};
Addressed addressed_thread(const std::string& thread, const std::string& title);

/// The record as the service has it now: what the mount shows may be as old as its `refresh`.
Async<Record> current_record(Mount& mount, std::string collection, std::string id);

/// Refuses `now`, the service's record, if it is not called so any more, unless this mount has renamed it, or knows a
/// later version that is called so: replicas of a service may lag. `is_in_doubt`: an earlier attempt to send the same
/// may have arrived.
Status check_name(Mount& mount, const Addressed& addressed, const Record& now, bool is_in_doubt = false);
/// Asks the service for the record and checks that. Asks again, for some seconds, if the service does not have the
/// record, or an earlier version than is known here.
void ask_name(Mount& mount, Addressed addressed, bool is_in_doubt, const CancelToken& cancel, Callback<void> done);

}  // namespace playfs::vfs
