#include "app/queued_here.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "app/output.h"
#include "base/fd.h"
#include "base/private_place.h"
#include "base/shell.h"

namespace playfs::app {

namespace {

constexpr std::size_t kLongestNote = 256;
/// Of what waits, an error names this many, each by so much of its message.
constexpr std::size_t kMostCommitsShown = 5, kLongestShown = 200;

/// One line that no other directory has. Inode numbers are used again; where the file system knows when a directory was
/// made, that tells them apart. Not the device: its number may change when the machine starts.
Result<std::string> identity_of(const std::string& directory) {
  struct statx seen {};
  if (statx(AT_FDCWD, directory.c_str(), 0, STATX_INO | STATX_BTIME, &seen) != 0)
    return fail(error_from_errno(errno, "stat " + directory));
  return fmt::format("{} {}.{:09}\n", seen.stx_ino, seen.stx_btime.tv_sec, seen.stx_btime.tv_nsec);
}

std::string shortened(std::string text) {
  if (text.size() <= kLongestShown) return text;
  text.resize(kLongestShown);
  while (!text.empty() && !is_valid_utf8(text)) text.pop_back();
  return text + "…";
}

/// The agent of a commit whose journal was lost is unknown.
std::string shown_commit(const publish::QueuedCommit& commit) {
  const std::string agent = commit.agent.empty() ? "" : ", by " + safe(shortened(commit.agent));
  return "'" + safe(shortened(commit.message)) + "'" + agent;
}

std::string shown_commits(const std::vector<publish::QueuedCommit>& commits) {
  std::string lines;
  for (std::size_t at = 0; at < commits.size() && at < kMostCommitsShown; ++at)
    lines += "\n  " + shown_commit(commits[at]);
  if (commits.size() > kMostCommitsShown) lines += fmt::format("\n  and {} more", commits.size() - kMostCommitsShown);
  return lines;
}

}  // namespace

/// The id may be a stranger's text.
std::string QueuedHere::path_of(const std::string& tx) const { return notes_ + "/" + runtime::as_component(tx); }

Status QueuedHere::note(const std::string& tx) const {
  PLAYFS_TRY(const std::string identity, identity_of(root_));
  Status noted = make_private_directory_below(state_, notes_);
  if (noted) noted = write_file_atomically(path_of(tx), identity);
  return noted ? noted : Status(fail(noted.error().while_doing("note that you queued the commit")));
}

void QueuedHere::forget(const std::string& tx) const {
  // A note that could not be removed does no harm: no queue has its commit any more.
  static_cast<void>(unlink(path_of(tx).c_str()));
}

Result<bool> QueuedHere::is_noted(const std::string& tx) const {
  PLAYFS_TRY(const std::string identity, identity_of(root_));
  auto note = read_file(path_of(tx), kLongestNote);
  if (note) return *note == identity;
  // Also the case if the note could not be written.
  if (note.error().code == ErrorCode::not_found || note.error().code == ErrorCode::not_a_directory) return false;
  return fail(std::move(note).error());
}

Status QueuedHere::check(const std::vector<publish::QueuedCommit>& waiting) const {
  std::vector<publish::QueuedCommit> others;
  for (const publish::QueuedCommit& each : waiting) {
    PLAYFS_TRY(const bool is_own, is_noted(each.tx));
    if (!is_own) others.push_back(each);
  }
  if (others.empty()) return {};
  return fail(
      ErrorCode::permission_denied,
      "what waits in " + safe(root_) +
          " to be published was not queued by you in this directory. It may be a stranger's, or this is a copy, "
          "or another home's or an earlier version's clone:" +
          shown_commits(others),
      "playfs clone --adopt " + shell_word(root_) + " publishes it as yours; rm -r " +
          shell_word(root_ + "/.playfs/state") + " drops it, and leaves the files");
}

}  // namespace playfs::app
