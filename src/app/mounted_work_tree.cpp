#include "app/mounted_work_tree.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "app/json_fields.h"
#include "app/mounted_tree.h"
#include "base/shell.h"
#include "base/text.h"
#include "model/path.h"

namespace playfs::app {

namespace {

template <class T>
T prepared() {
  T request{};
  request.size = sizeof request;
  request.version = PLAYFS_IOCTL_VERSION;
  return request;
}

template <std::size_t Size>
Status put(char (&field)[Size], const std::string& text, const char* what) {
  if (text.size() >= Size)
    return fail(ErrorCode::invalid_argument,
                std::string(what) + " is longer than " + std::to_string(Size - 1) + " bytes");
  if (!is_valid_utf8(text) || text.find('\0') != std::string::npos)
    return fail(ErrorCode::invalid_argument, std::string(what) + " is not valid UTF-8 text");
  std::memcpy(field, text.data(), text.size());
  return {};
}

publish::Outcome outcome_of(__u32 outcome) {
  switch (static_cast<playfs_outcome>(outcome)) {
    case PLAYFS_PUBLISHED: return publish::Outcome::published;
    case PLAYFS_MERGED: return publish::Outcome::merged;
    case PLAYFS_BRANCHED: return publish::Outcome::branched;
    case PLAYFS_PENDING: return publish::Outcome::pending;
    case PLAYFS_NOTHING: return publish::Outcome::nothing;
    case PLAYFS_PLANNED: return publish::Outcome::planned;
    case PLAYFS_CANCELLED: return publish::Outcome::cancelled;
  }
  return publish::Outcome::pending;  // from a newer mount: only that it is journalled is certain
}

publish::Phase phase_of(__u32 phase) {
  switch (static_cast<playfs_phase>(phase)) {
    case PLAYFS_PHASE_IDLE: return publish::Phase::idle;
    case PLAYFS_PHASE_FREEZING: return publish::Phase::freezing;
    case PLAYFS_PHASE_PLANNING: return publish::Phase::planning;
    case PLAYFS_PHASE_UPLOADING: return publish::Phase::uploading;
    case PLAYFS_PHASE_POSTING: return publish::Phase::posting;
    case PLAYFS_PHASE_VERIFYING: return publish::Phase::verifying;
  }
  return publish::Phase::idle;
}

Result<playfs_commit> encoded(const publish::CommitRequest& wanted) {
  auto request = prepared<playfs_commit>();
  PLAYFS_CHECK(put(request.message, wanted.message, "the message"));
  PLAYFS_CHECK(put(request.agent, wanted.agent, "the agent's handle"));
  request.flags = (wanted.wait ? 0 : PLAYFS_COMMIT_NOWAIT) | (wanted.allow_merge ? 0 : PLAYFS_COMMIT_NO_MERGE) |
                  (wanted.resolved ? PLAYFS_COMMIT_RESOLVED : 0) | (wanted.dry_run ? PLAYFS_COMMIT_DRY_RUN : 0);
  return request;
}

publish::CommitResult decoded(const playfs_commit& answer) {
  publish::CommitResult result;
  result.outcome = outcome_of(answer.outcome);
  result.tx = answer.tx;
  result.revision = RevisionId(answer.revision);
  result.merged_revision = RevisionId(answer.merged_revision);
  result.files_changed = answer.files_changed;
  result.writes_used = answer.writes_used;
  result.chunks_done = answer.chunks_done;
  result.chunks_total = answer.chunks_total;
  result.retry_after_s = answer.retry_after_s;
  return result;
}

/// Whether the kernel's time limit of a call has passed, rather than the service's: the call is to be repeated.
bool is_out_of_time(const Status& called) {
  return !called && called.error().code == ErrorCode::timed_out && called.error().retry_after;
}

constexpr std::size_t kLargestText = 16 << 20;

std::string named(const std::string& path) { return path.empty() ? "." : path; }

std::string list_of(const std::vector<std::string>& paths) {
  std::string list;
  for (const std::string& path : paths) list += named(path) + '\0';
  return list;
}

/// As many of the paths from `at` on as have room in one request: at least one.
std::vector<std::string> beginning_of(const std::vector<std::string>& paths, std::size_t at) {
  std::vector<std::string> some{paths[at]};
  for (std::size_t room = PLAYFS_PATH_MAX, used = paths[at].size() + 2; ++at < paths.size();) {
    used += named(paths[at]).size() + 1;
    if (used >= room) break;
    some.push_back(paths[at]);
  }
  return some;
}

template <std::size_t Size>
std::vector<std::string> paths_in(const char (&list)[Size]) {
  std::vector<std::string> paths;
  for (std::size_t at = 0; at < Size && list[at] != '\0';) {
    std::string path(list + at, strnlen(list + at, Size - at));
    at += path.size() + 1;
    paths.push_back(path == "." ? "" : std::move(path));
  }
  return paths;
}

}  // namespace

// The control files.

Result<std::string> MountedWorkTree::status_text() {
  return read_file(place().project_directory + "/status", kLargestText);
}

Result<JsonObject> MountedWorkTree::status_document() {
  return read_json_object(place().project_directory + "/status.json");
}

Status MountedWorkTree::look_for_branches() {
  const std::string directory = place().project_directory + "/branches";
  std::error_code problem;
  for (std::filesystem::directory_iterator entry(directory, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    // Follows the link, so that the mount fetches its target; a branch that cannot be fetched is left out.
    struct stat ignored {};
    static_cast<void>(stat(entry->path().c_str(), &ignored));
  }
  if (problem) return fail(error_from_errno(problem.value(), "list the branches in " + directory));
  return {};
}

Result<std::unique_ptr<RevisionSource>> MountedWorkTree::revisions(std::uint64_t limit) {
  return mounted_revisions(place().project_directory, limit);
}

bool MountedWorkTree::has_revision(const std::string& id) {
  struct stat ignored {};
  return !why_not_a_component(id) && stat((place().project_directory + "/revisions/" + id).c_str(), &ignored) == 0;
}

Result<std::unique_ptr<ReadableTree>> MountedWorkTree::tree(const std::string& revision) {
  if (revision.empty()) return std::unique_ptr<ReadableTree>(std::make_unique<MountedTree>(""));
  // Ids of parents are strangers': one with slashes in it would lead out of the mount.
  if (auto why = why_not_a_component(revision))
    return fail(ErrorCode::refused_input, "the revision id '" + revision + "' cannot be used: " + *why);
  const std::string root = place().project_directory + "/revisions/" + revision;
  struct stat ignored {};
  if (stat(root.c_str(), &ignored) != 0) return fail(error_from_errno(errno, "open revision " + revision));
  return std::unique_ptr<ReadableTree>(std::make_unique<MountedTree>(root));
}

// The ioctls.

Result<UniqueFd> MountedWorkTree::root() const {
  UniqueFd root(::open(place().work.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return fail(error_from_errno(errno, "open the work tree " + place().work));
  return root;
}

Error MountedWorkTree::why(int errnum, const std::string& what, const playfs_error& told) const {
  const std::string code(told.code, strnlen(told.code, sizeof told.code));
  if (code.empty() && (errnum == ENOTTY || errnum == EINVAL))
    return Error{ErrorCode::not_supported,
                 what + ": the mount at " + place().mount_point + " is from another version of playfs",
                 "playfs umount " + shell_operand(place().mount_point) + ", then mount again"};
  if (code.empty()) return error_from_errno(errnum, what);
  if (errnum == ENOTTY)
    return Error{ErrorCode::not_supported, what + ": " + place().work + " is not a writable work tree",
                 "playfs status " + shell_operand(place().work) + " says why"};
  Error error{code_named(code), what + ": " + std::string(told.message, strnlen(told.message, sizeof told.message)),
              std::string(told.hint, strnlen(told.hint, sizeof told.hint))};
  if (told.retry_after_s > 0) error.retry_after = std::chrono::seconds(told.retry_after_s);
  if (error.hint.empty()) error.hint = "playfs status " + shell_operand(place().work);
  return error;
}

template <class T>
Status MountedWorkTree::call(unsigned long request, T& argument, const std::string& what) const {
  PLAYFS_TRY(const UniqueFd root_fd, root());
  if (ioctl(root_fd.get(), request, &argument) != 0) return fail(why(errno, what, argument.error));
  return {};
}

template <class T>
Status MountedWorkTree::call_until_it_ends(unsigned long request, T& argument, const std::string& what) const {
  for (const T asked = argument;; argument = asked) {
    auto called = call(request, argument, what);
    if (!is_out_of_time(called)) return called;
    std::this_thread::sleep_for(*called.error().retry_after);
  }
}

Result<vfs::WorkStatus> MountedWorkTree::status() {
  auto answer = prepared<playfs_status>();
  PLAYFS_CHECK(call(PLAYFS_IOC_STATUS, answer, "status"));
  vfs::WorkStatus status;
  status.project = answer.project;
  status.base = answer.base;
  status.head = answer.head;
  status.staged = answer.staged;
  status.pending = answer.pending;
  status.conflicts = answer.conflicts;
  status.phase = phase_of(answer.phase);
  status.chunks_done = answer.chunks_done;
  status.chunks_total = answer.chunks_total;
  status.retry_after_s = answer.retry_after_s;
  status.seconds_left = answer.seconds_left;
  status.bytes_done = answer.bytes_done;
  status.bytes_total = answer.bytes_total;
  status.queued = answer.queued;
  return status;
}

std::optional<Error> MountedWorkTree::why_it_waits() {
  const auto status = status_document();
  const JsonObject* publication = status ? object_of(*status, "publication") : nullptr;
  const JsonObject* why = publication ? object_of(*publication, "waiting_for") : nullptr;
  if (why == nullptr) return std::nullopt;
  return Error{code_named(text_of(*why, "code")), text_of(*why, "message")};
}

Status MountedWorkTree::commit(playfs_commit& request) const { return call(PLAYFS_IOC_COMMIT, request, "commit"); }

/// If the kernel limits the duration of a call, it answers `pending` early, and the outcome is requested again by the
/// commit's id, since others may have committed meanwhile. After an interrupt the outcome stays `pending`.
Status MountedWorkTree::wait_for_outcome(playfs_commit& request, const std::function<bool()>& interrupted) const {
  while (request.outcome == PLAYFS_PENDING) {
    // An interrupted call may have answered `pending` as well.
    timespec pause{0, 500'000'000};
    if (interrupted() || nanosleep(&pause, nullptr) != 0) return {};
    if (*request.tx == '\0') return {};  // an older mount, which cannot be asked
    playfs_commit again = request;
    again.flags |= PLAYFS_COMMIT_AGAIN;
    Status asked = commit(again);
    if (!asked && asked.error().code == ErrorCode::interrupted) return {};
    if (!asked && *again.error.code == '\0') return {};  // the mount ended; the publication goes on at the next one
    if (is_out_of_time(asked)) continue;
    PLAYFS_CHECK(asked);
    request = again;
  }
  return {};
}

Result<publish::CommitResult> MountedWorkTree::commit(const publish::CommitRequest& wanted,
                                                      const std::function<bool()>& interrupted) {
  PLAYFS_TRY(playfs_commit request, encoded(wanted));
  Status committed = commit(request);
  if (committed && request.outcome == PLAYFS_PENDING && wanted.wait)
    PLAYFS_CHECK(wait_for_outcome(request, interrupted));
  // Frozen and journalled before any waiting: it goes on without us.
  if (!committed && committed.error().code == ErrorCode::interrupted) request.outcome = PLAYFS_PENDING;
  else PLAYFS_CHECK(committed);
  publish::CommitResult result = decoded(request);
  if (result.outcome != publish::Outcome::branched) return result;
  const JsonObject full = details(result);
  if (const Json::Array* paths = array_of(full, "conflicts"))
    for (const Json& path : *paths)
      if (path.string()) result.conflicts.push_back(*path.string());
  return result;
}

/// Reads what the fixed-size struct cannot hold, unless the file is about another commit by now.
JsonObject MountedWorkTree::details(const publish::CommitResult& result) {
  auto read = read_json_object(place().project_directory + "/commit");
  return read && text_of(*read, "tx") == result.tx ? *std::move(read) : JsonObject();
}

Result<vfs::UpdateResult> MountedWorkTree::update() {
  auto request = prepared<playfs_update>();
  PLAYFS_CHECK(call_until_it_ends(PLAYFS_IOC_UPDATE, request, "update"));
  return vfs::UpdateResult{request.base, request.conflicts};
}

Result<vfs::UpdateResult> MountedWorkTree::merge(const std::string& revision) {
  auto request = prepared<playfs_merge>();
  if (revision.size() >= sizeof request.revision)
    return fail(ErrorCode::not_found, "not a valid revision id: " + revision);
  std::memcpy(request.revision, revision.data(), revision.size());
  PLAYFS_CHECK(call_until_it_ends(PLAYFS_IOC_MERGE, request, "merge " + revision));
  return vfs::UpdateResult{request.base, request.conflicts};
}

Result<publish::Cancelled> MountedWorkTree::cancel() {
  auto request = prepared<playfs_cancel>();
  PLAYFS_CHECK(call(PLAYFS_IOC_CANCEL, request, "cancel"));
  return publish::Cancelled{request.cancelled, request.too_late != 0};
}

Result<vfs::DiscardResult> MountedWorkTree::discard_at_once(const std::vector<std::string>& paths, bool dry_run,
                                                            std::uint64_t kept_in) const {
  auto request = prepared<playfs_discard>();
  const bool is_list = paths.size() > 1;
  const std::string text = is_list ? list_of(paths) : named(paths.front());
  if (text.size() >= sizeof request.path)
    return fail(ErrorCode::name_too_long,
                "the path is longer than " + std::to_string(sizeof request.path - 1) + " bytes");
  std::memcpy(request.path, text.data(), text.size());
  request.flags = (dry_run ? PLAYFS_DISCARD_DRY_RUN : 0) | (is_list ? PLAYFS_DISCARD_LIST : 0);
  request.checkpoint = kept_in;
  PLAYFS_CHECK(call(PLAYFS_IOC_DISCARD, request, is_list ? "discard" : "discard " + text));
  vfs::DiscardResult result{request.discarded, dry_run ? 0 : request.checkpoint};
  if (is_list) result.at = paths_in(request.path);
  // Where nothing was staged there is nothing to restore either.
  else if (result.paths > 0 || paths.front().empty()) result.at = paths;
  return result;
}

Result<DroppedChanges> MountedWorkTree::discard(const std::vector<std::string>& paths, bool dry_run) {
  DroppedChanges all;
  std::string done;
  for (std::size_t at = 0; at < paths.size();) {
    const std::vector<std::string> some = takes_lists_ ? beginning_of(paths, at) : std::vector{paths[at]};
    auto dropped = discard_at_once(some, dry_run, all.kept.latest());
    const bool is_gone = !dropped && dropped.error().code == ErrorCode::not_found && !done.empty();
    if (!dropped && some.size() > 1 && (dry_run || is_gone)) {
      // One by one: to say which of them it is, or since a mount of an earlier version takes no list.
      takes_lists_ = false;
      continue;
    }
    at += some.size();
    // A path below one that was named earlier is as published already, and may no longer exist.
    if (is_gone && !dry_run) continue;
    if (!dropped) {
      Error error = dropped.error();
      if (!done.empty() && !dry_run) error.message += "; already discarded:" + done;
      return fail(std::move(error));
    }
    all.paths += dropped->paths;
    all.kept.add(dropped->checkpoint, dropped->at);
    for (const std::string& path : some) done += " " + named(path);
  }
  return all;
}

Result<vfs::CheckpointResult> MountedWorkTree::checkpoint(const std::string& message) {
  auto request = prepared<playfs_checkpoint>();
  PLAYFS_CHECK(put(request.message, message, "the message"));
  PLAYFS_CHECK(call(PLAYFS_IOC_CHECKPOINT, request, "checkpoint"));
  return vfs::CheckpointResult{request.id, request.paths};
}

Status MountedWorkTree::drop_checkpoint(std::uint64_t id) {
  auto request = prepared<playfs_checkpoint>();
  request.flags = PLAYFS_CHECKPOINT_DROP;
  request.id = id;
  return call(PLAYFS_IOC_CHECKPOINT, request, "drop checkpoint " + std::to_string(id));
}

Result<vfs::RestoreResult> MountedWorkTree::restore(const vfs::RestoreRequest& wanted) {
  auto request = prepared<playfs_restore>();
  request.id = wanted.id;
  const std::string paths = list_of(wanted.paths);
  if (paths.size() >= sizeof request.paths)
    return fail(ErrorCode::invalid_argument, "too many paths for one restore", "name the directories that they are in");
  std::memcpy(request.paths, paths.data(), paths.size());
  PLAYFS_CHECK(call(PLAYFS_IOC_RESTORE, request, "restore checkpoint " + std::to_string(wanted.id)));
  return vfs::RestoreResult{request.restored, request.before, request.conflicts, request.base_then, request.base_now};
}

}  // namespace playfs::app
