// Reports a commit in words, as JSON and as an exit code, whether it was made through a mount or not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/exit_code.h"
#include "app/output.h"
#include "publish/publisher.h"

namespace playfs::app {

/// {"outcome", "revision", "merged_revision", "files_changed", "writes_used", "chunks_done", "chunks_total",
/// "retry_after_s"}
JsonObject commit_document(const publish::CommitResult& result);

/// Prints the paths of a dry run and what each costs. `plan` is in the format of the mount's `commit` file.
void print_plan(Output& out, const JsonObject& plan);

/// How long `chunks` take under the limits that the service documents, if `written` were sent in the last hour.
std::uint64_t hours_under_limits(std::uint32_t chunks, std::uint64_t written);

inline constexpr std::string_view kAfterBranch = "playfs update, then playfs commit the merge";
/// Reports the outcome on stderr, and what to do next: `after_branch` if it became a branch. `in_background`: a pending
/// publication goes on when the command has ended, rather than with the next command. `hours`: how long a planned one
/// takes.
void tell_commit(Output& out, const publish::CommitResult& result, std::string_view after_branch = kAfterBranch,
                 bool in_background = true, std::uint64_t hours = 0);

/// Reports the number of paths left in conflict, if any, and what to do. Returns done, or the exit code for conflicts.
ExitCode tell_conflicts(Output& out, std::uint32_t conflicts);

ExitCode exit_code_for(publish::Outcome outcome);

}  // namespace playfs::app
