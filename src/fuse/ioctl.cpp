#include "fuse/ioctl.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <playfs/ioctl.h>

#include "base/text.h"
#include "fuse/errno_table.h"
#include "model/path.h"

namespace playfs::fuse {

namespace {

/// The caller's struct, if its size and version are the ones this build knows.
template <class Struct>
std::optional<Struct> decode(std::string_view input) {
  Struct decoded;
  if (input.size() != sizeof decoded) return std::nullopt;
  std::memcpy(&decoded, input.data(), sizeof decoded);
  if (decoded.size != sizeof decoded || decoded.version != PLAYFS_IOCTL_VERSION) return std::nullopt;
  return decoded;
}

/// The text of a fixed field; nullopt if it is not terminated or not UTF-8.
template <std::size_t Size>
std::optional<std::string> text_of(const char (&field)[Size]) {
  std::size_t length = strnlen(field, Size);
  std::string text(field, length);
  if (length == Size || !is_valid_utf8(text)) return std::nullopt;
  return text;
}

/// Ids are bounded on arrival (kMaxIdLength), so one that does not fit is not an id of ours.
template <std::size_t Size>
void put(char (&field)[Size], const std::string& text) {
  std::memset(field, 0, Size);
  if (text.size() < Size) std::memcpy(field, text.data(), text.size());
}

__u32 outcome_of(vfs::Outcome outcome) {
  switch (outcome) {
    case vfs::Outcome::published: return PLAYFS_PUBLISHED;
    case vfs::Outcome::merged: return PLAYFS_MERGED;
    case vfs::Outcome::branched: return PLAYFS_BRANCHED;
    case vfs::Outcome::pending: return PLAYFS_PENDING;
    case vfs::Outcome::nothing: return PLAYFS_NOTHING;
    case vfs::Outcome::planned: return PLAYFS_PLANNED;
    case vfs::Outcome::cancelled: return PLAYFS_CANCELLED;
  }
  return PLAYFS_NOTHING;
}

__u32 phase_of(vfs::Phase phase) {
  switch (phase) {
    case vfs::Phase::idle: return PLAYFS_PHASE_IDLE;
    case vfs::Phase::freezing: return PLAYFS_PHASE_FREEZING;
    case vfs::Phase::planning: return PLAYFS_PHASE_PLANNING;
    case vfs::Phase::uploading: return PLAYFS_PHASE_UPLOADING;
    case vfs::Phase::posting: return PLAYFS_PHASE_POSTING;
    case vfs::Phase::verifying: return PLAYFS_PHASE_VERIFYING;
  }
  return PLAYFS_PHASE_IDLE;
}

/// As much of the text as fits, without cutting a character.
template <std::size_t Size>
void put_cut(char (&field)[Size], std::string_view text) {
  std::memset(field, 0, Size);
  if (text.size() >= Size) {
    text = text.substr(0, Size - 1);
    while (!text.empty() && !is_valid_utf8(text)) text.remove_suffix(1);
  }
  std::memcpy(field, text.data(), text.size());
}

/// Text for `error`: one line without control characters, whatever a service put into it, because programs print it as
/// it is. Text that is escaped already stays as it is.
std::string on_one_line(std::string_view text) {
  std::string line;
  for (char c : escape_for_terminal(text)) {
    if (c == '\t') line += "\\x09";
    else line += c;
  }
  return line;
}

/// The errno, with the reason in the struct. A node without this ioctl answers ENOTTY.
template <class Struct>
void answer_error(Request& request, Struct& answer, const Error& error) {
  answer.error = {};
  put_cut(answer.error.code, name_of(error.code));
  put_cut(answer.error.message, on_one_line(error.message));
  put_cut(answer.error.hint, on_one_line(error.hint));
  answer.error.retryable = is_transient(error.code) ? 1 : 0;
  if (error.retry_after) answer.error.retry_after_s = static_cast<__u32>(error.retry_after->count());
  request.ioctl_result(&answer, sizeof answer, error.code == ErrorCode::not_supported ? ENOTTY : errno_of(error.code));
}

template <class Struct>
void refuse(Request& request, Struct answer, const char* why) {
  answer_error(request, answer, {ErrorCode::invalid_argument, why});
}

constexpr const char* kNoText = "a text is not terminated, or not UTF-8";
constexpr const char* kNoFlag = "unknown flag";
constexpr const char* kNoPath = "not a path relative to the root of a work tree";

void commit(vfs::FileSystem& file_system, vfs::NodeId node, std::string_view input, Request request) {
  auto decoded = decode<playfs_commit>(input);
  if (!decoded) return request.error_number(EINVAL);
  constexpr __u32 known_flags = PLAYFS_COMMIT_NOWAIT | PLAYFS_COMMIT_NO_MERGE | PLAYFS_COMMIT_RESOLVED |
                                PLAYFS_COMMIT_DRY_RUN | PLAYFS_COMMIT_AGAIN;
  if ((decoded->flags & ~known_flags) != 0) return refuse(request, *decoded, kNoFlag);
  auto agent = text_of(decoded->agent);
  auto message = text_of(decoded->message);
  if (!agent || !message) return refuse(request, *decoded, kNoText);

  vfs::CommitRequest wanted;
  wanted.agent = *agent;
  wanted.message = *message;
  wanted.wait = (decoded->flags & PLAYFS_COMMIT_NOWAIT) == 0;
  wanted.allow_merge = (decoded->flags & PLAYFS_COMMIT_NO_MERGE) == 0;
  wanted.resolved = (decoded->flags & PLAYFS_COMMIT_RESOLVED) != 0;
  wanted.dry_run = (decoded->flags & PLAYFS_COMMIT_DRY_RUN) != 0;
  if ((decoded->flags & PLAYFS_COMMIT_AGAIN) != 0) {
    auto tx = text_of(decoded->tx);
    if (!tx || tx->empty()) return refuse(request, *decoded, tx ? "no commit id given" : kNoText);
    wanted.again = *tx;
  }
  vfs::Caller caller = request.caller();
  file_system.commit(caller, node, std::move(wanted),
                     [request = std::move(request), answer = *decoded](Result<vfs::CommitResult> result) mutable {
                       if (!result) return answer_error(request, answer, result.error());
                       answer.outcome = outcome_of(result->outcome);
                       answer.files_changed = result->files_changed;
                       answer.writes_used = result->writes_used;
                       answer.chunks_done = result->chunks_done;
                       answer.chunks_total = result->chunks_total;
                       answer.retry_after_s = result->retry_after_s;
                       put(answer.tx, result->tx);
                       put(answer.revision, result->revision.text());
                       put(answer.merged_revision, result->merged_revision.text());
                       request.ioctl_result(&answer, sizeof answer);
                     });
}

void status(vfs::FileSystem& file_system, vfs::NodeId node, std::string_view input, Request request) {
  auto decoded = decode<playfs_status>(input);
  if (!decoded) return request.error_number(EINVAL);
  vfs::Caller caller = request.caller();
  file_system.work_status(caller, node,
                          [request = std::move(request), answer = *decoded](Result<vfs::WorkStatus> result) mutable {
                            if (!result) return answer_error(request, answer, result.error());
                            put(answer.project, result->project);
                            put(answer.base, result->base);
                            put(answer.head, result->head);
                            answer.staged = result->staged;
                            answer.pending = result->pending;
                            answer.conflicts = result->conflicts;
                            answer.phase = phase_of(result->phase);
                            answer.chunks_done = result->chunks_done;
                            answer.chunks_total = result->chunks_total;
                            answer.retry_after_s = result->retry_after_s;
                            answer.seconds_left = result->seconds_left;
                            answer.bytes_done = result->bytes_done;
                            answer.bytes_total = result->bytes_total;
                            answer.queued = result->queued;
                            request.ioctl_result(&answer, sizeof answer);
                          });
}

/// nullopt if the list is not terminated, or not UTF-8.
template <std::size_t Size>
std::optional<std::vector<std::string>> texts_of(const char (&field)[Size]) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < Size && field[at] != '\0';) {
    std::string text(field + at, strnlen(field + at, Size - at));
    at += text.size() + 1;
    if (at >= Size || !is_valid_utf8(text)) return std::nullopt;
    texts.push_back(std::move(text));
  }
  return texts;
}

/// nullopt if one of them is none.
std::optional<std::vector<std::string>> paths_below_root(const std::vector<std::string>& texts) {
  std::vector<std::string> paths;
  for (const std::string& text : texts) {
    auto path = path_below_root(text);
    if (!path) return std::nullopt;
    paths.push_back(*std::move(path));
  }
  return paths;
}

/// As texts_of() reads it; a path that is "" is ".". REQUIRES: `paths` are some of those that were read from it.
template <std::size_t Size>
void put_list(char (&field)[Size], const std::vector<std::string>& paths) {
  std::string list;
  for (const std::string& path : paths) list += (path.empty() ? "." : path) + '\0';
  std::memset(field, 0, Size);
  std::memcpy(field, list.data(), std::min(list.size(), Size - 1));
}

void discard(vfs::FileSystem& file_system, vfs::NodeId node, std::string_view input, Request request) {
  auto decoded = decode<playfs_discard>(input);
  if (!decoded) return request.error_number(EINVAL);
  if ((decoded->flags & ~(PLAYFS_DISCARD_DRY_RUN | PLAYFS_DISCARD_LIST)) != 0)
    return refuse(request, *decoded, kNoFlag);
  const bool is_list = (decoded->flags & PLAYFS_DISCARD_LIST) != 0;
  std::optional<std::vector<std::string>> texts;
  if (is_list) texts = texts_of(decoded->path);
  else if (auto text = text_of(decoded->path)) texts.emplace(text->empty() ? 0 : 1, *text);
  if (!texts) return refuse(request, *decoded, kNoText);
  if (is_list && texts->empty()) return refuse(request, *decoded, "the list names no path");
  auto paths = paths_below_root(*texts);
  if (!paths) return refuse(request, *decoded, kNoPath);
  vfs::DiscardRequest wanted{*std::move(paths), (decoded->flags & PLAYFS_DISCARD_DRY_RUN) != 0, decoded->checkpoint};
  vfs::Caller caller = request.caller();
  file_system.discard(caller, node, std::move(wanted),
                      [request = std::move(request), answer = *decoded](Result<vfs::DiscardResult> result) mutable {
                        if (!result) return answer_error(request, answer, result.error());
                        answer.discarded = result->paths;
                        answer.checkpoint = result->checkpoint;
                        if ((answer.flags & PLAYFS_DISCARD_LIST) != 0) put_list(answer.path, result->at);
                        request.ioctl_result(&answer, sizeof answer);
                      });
}

void checkpoint(vfs::FileSystem& file_system, vfs::NodeId node, std::string_view input, Request request) {
  auto decoded = decode<playfs_checkpoint>(input);
  if (!decoded) return request.error_number(EINVAL);
  const bool drops = decoded->flags == PLAYFS_CHECKPOINT_DROP;
  if ((decoded->flags & ~PLAYFS_CHECKPOINT_DROP) != 0) return refuse(request, *decoded, kNoFlag);
  auto message = text_of(decoded->message);
  if (!message) return refuse(request, *decoded, kNoText);
  if (drops && decoded->id == 0) return refuse(request, *decoded, "no checkpoint given");
  vfs::CheckpointRequest wanted{*std::move(message), drops ? decoded->id : 0};
  vfs::Caller caller = request.caller();
  file_system.checkpoint(
      caller, node, std::move(wanted),
      [request = std::move(request), answer = *decoded](Result<vfs::CheckpointResult> result) mutable {
        if (!result) return answer_error(request, answer, result.error());
        if (answer.flags == 0) answer.id = result->id;
        answer.paths = result->paths;
        request.ioctl_result(&answer, sizeof answer);
      });
}

void restore(vfs::FileSystem& file_system, vfs::NodeId node, std::string_view input, Request request) {
  auto decoded = decode<playfs_restore>(input);
  if (!decoded) return request.error_number(EINVAL);
  if (decoded->flags != 0) return refuse(request, *decoded, kNoFlag);
  auto texts = texts_of(decoded->paths);
  if (!texts) return refuse(request, *decoded, kNoText);
  auto paths = paths_below_root(*texts);
  if (!paths) return refuse(request, *decoded, kNoPath);
  vfs::RestoreRequest wanted{decoded->id, *std::move(paths)};
  vfs::Caller caller = request.caller();
  file_system.restore(caller, node, std::move(wanted),
                      [request = std::move(request), answer = *decoded](Result<vfs::RestoreResult> result) mutable {
                        if (!result) return answer_error(request, answer, result.error());
                        answer.restored = result->paths;
                        answer.before = result->before;
                        answer.conflicts = result->conflicts;
                        put(answer.base_then, result->base_then);
                        put(answer.base_now, result->base_now);
                        request.ioctl_result(&answer, sizeof answer);
                      });
}

void update(vfs::FileSystem& file_system, vfs::NodeId node, std::string_view input, Request request) {
  auto decoded = decode<playfs_update>(input);
  if (!decoded) return request.error_number(EINVAL);
  if (decoded->flags != 0) return refuse(request, *decoded, kNoFlag);
  vfs::Caller caller = request.caller();
  file_system.update(caller, node, RevisionId(),
                     [request = std::move(request), answer = *decoded](Result<vfs::UpdateResult> result) mutable {
                       if (!result) return answer_error(request, answer, result.error());
                       answer.conflicts = result->conflicts;
                       put(answer.base, result->base);
                       request.ioctl_result(&answer, sizeof answer);
                     });
}

void merge(vfs::FileSystem& file_system, vfs::NodeId node, std::string_view input, Request request) {
  auto decoded = decode<playfs_merge>(input);
  if (!decoded) return request.error_number(EINVAL);
  if (decoded->flags != 0) return refuse(request, *decoded, kNoFlag);
  auto revision = text_of(decoded->revision);
  if (!revision || revision->empty()) return refuse(request, *decoded, revision ? "no revision given" : kNoText);
  vfs::Caller caller = request.caller();
  file_system.update(caller, node, RevisionId(*revision),
                     [request = std::move(request), answer = *decoded](Result<vfs::UpdateResult> result) mutable {
                       if (!result) return answer_error(request, answer, result.error());
                       answer.conflicts = result->conflicts;
                       put(answer.base, result->base);
                       request.ioctl_result(&answer, sizeof answer);
                     });
}

void cancel(vfs::FileSystem& file_system, vfs::NodeId node, std::string_view input, Request request) {
  auto decoded = decode<playfs_cancel>(input);
  if (!decoded) return request.error_number(EINVAL);
  if (decoded->flags != 0) return refuse(request, *decoded, kNoFlag);
  vfs::Caller caller = request.caller();
  file_system.cancel(caller, node,
                     [request = std::move(request), answer = *decoded](Result<vfs::Cancelled> result) mutable {
                       if (!result) return answer_error(request, answer, result.error());
                       answer.cancelled = result->commits;
                       answer.too_late = result->too_late ? 1 : 0;
                       request.ioctl_result(&answer, sizeof answer);
                     });
}

}  // namespace

void serve_ioctl(vfs::FileSystem& file_system, vfs::NodeId node, unsigned command, std::string_view input,
                 Request request) {
  switch (command) {
    case PLAYFS_IOC_COMMIT: return commit(file_system, node, input, std::move(request));
    case PLAYFS_IOC_STATUS: return status(file_system, node, input, std::move(request));
    case PLAYFS_IOC_DISCARD: return discard(file_system, node, input, std::move(request));
    case PLAYFS_IOC_UPDATE: return update(file_system, node, input, std::move(request));
    case PLAYFS_IOC_MERGE: return merge(file_system, node, input, std::move(request));
    case PLAYFS_IOC_CANCEL: return cancel(file_system, node, input, std::move(request));
    case PLAYFS_IOC_CHECKPOINT: return checkpoint(file_system, node, input, std::move(request));
    case PLAYFS_IOC_RESTORE: return restore(file_system, node, input, std::move(request));
    default: return request.error_number(ENOTTY);
  }
}

}  // namespace playfs::fuse
