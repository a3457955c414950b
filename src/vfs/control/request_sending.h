// Sending a journalled request: at first for its writer, later by the mount itself.
//
// A JSON object's writer gets the outcome as the errno of the write. Plain text is accepted before it is sent
// (RequestText::is_accepted), so nobody is told of a failure: it is sent again if its outcome is unknown
// (resumed_requests.h), and saved if it was refused.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vfs/async.h"
#include "vfs/control/request_journal.h"
#include "vfs/control/request_text.h"
#include "vfs/published/record_fetches.h"

namespace playfs::vfs {

class Mount;

/// The last step's record, and the request with the ids of all.
struct Sent {
  std::shared_ptr<JournalledRequest> request;
  RecordPartPtr last;
};

/// Journals at once, and sends when it is its turn. `op` is the one that runs the request.
Async<Sent> send_once(Mount& mount, OperationPtr op, std::string path, std::vector<RequestStep> steps);
/// Another attempt, without a writer who waits.
Async<Sent> send_again(Mount& mount, OperationPtr op, std::shared_ptr<JournalledRequest> request);

/// What the control file shows of it.
ShownText shown_answer(Mount& mount, const Sent& sent);
/// Checks that the handle of a new agent is free, and that a thread is still called what a message for it was
/// addressed by.
Async<void> check_step(Mount& mount, OperationPtr op, RequestStep step);
/// Whether the outcome is unknown, so that another attempt may find it out.
bool is_undecided(const Error& error);
/// Adds a hint to an error that leaves the outcome open: `lost` if the request may have arrived, `later` if there were
/// too many requests. One that was not sent is to be written again.
Error with_advice(Error error, const std::string& lost, const std::string& later);

}  // namespace playfs::vfs
