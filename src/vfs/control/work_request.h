// A request that programs write to a project's `commit`: to publish, or to do something else with the work tree. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/ids.h"
#include "vfs/control/requests.h"
#include "vfs/file_system.h"

namespace playfs::vfs {

struct WorkRequest {
  enum class Kind { commit, cancel, update, merge, discard, checkpoint, restore };
  Kind kind = Kind::commit;
  CommitRequest commit;            ///< its `dry_run` also for `discard`
  RevisionId revision;             ///< of `merge`
  std::vector<std::string> paths;  ///< of `discard` and `restore`, below the work tree's root; "" is the root
  std::string message;             ///< of `checkpoint`
  std::uint64_t checkpoint = 0;    ///< of `restore`
};

const Form& work_request_form();
/// Plain text is the message; JSON may set any field.
Result<WorkRequest> parse_work_request(const std::string& text);

std::string update_document(const char* outcome, const UpdateResult& result);
std::string discard_document(const DiscardResult& result, bool dry_run);
std::string checkpoint_document(const CheckpointResult& result);
std::string restore_document(std::uint64_t id, const RestoreResult& result);

}  // namespace playfs::vfs
