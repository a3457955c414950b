// How a commit went, in words, as JSON and as an exit code: the same whether it was made through a mount or not.
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

/// The paths of a dry run and what each takes: `plan` as the mount's `commit` file has it.
void print_plan(Output& out, const JsonObject& plan);

/// How long so many chunks take under the limits that the service documents, counted from an hour without any.
std::uint64_t hours_under_limits(std::uint32_t chunks);

/// Says it on stderr, with what to do next: `after_branch` where it became a branch.
void tell_commit(Output& out, const publish::CommitResult& result,
                 std::string_view after_branch = "playfs update, then playfs commit the merge");

/// Says how many paths were left in conflict, if any, and what to do; done, or the exit code for that.
ExitCode tell_conflicts(Output& out, std::uint32_t conflicts);

ExitCode exit_code_for(publish::Outcome outcome);

}  // namespace playfs::app
