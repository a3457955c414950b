#include "clone/clone.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/await.h"
#include "base/text.h"
#include "clone/git_guard.h"
#include "clone/take_in.h"

namespace playfs::clone {

namespace {

// Below the state folder.
constexpr const char* kLockFile = "/lock";
constexpr const char* kEarlierIndexFile = "/index.db";
constexpr std::size_t kLongestHolder = 256;
/// How often to take in what is changed while the stage's content is brought out.
constexpr int kMostRounds = 5;

std::string state_of(const std::string& directory) { return directory + "/" + kStateFolder; }
std::string index_in(const std::string& folder) { return folder + "/" + kGuardedFolder + "/index.db"; }

/// Earlier versions had the index where `git clean -X` removes it.
Status move_earlier_index(const std::string& folder) {
  const std::string from = folder + kEarlierIndexFile, to = index_in(folder);
  if (access(from.c_str(), F_OK) != 0) return {};
  for (const char* part : {"-wal", ""})
    if (std::rename((from + part).c_str(), (to + part).c_str()) != 0 && errno != ENOENT)
      return fail(error_from_errno(errno, "move " + from + part));
  return {};
}

}  // namespace

Result<Lock> Lock::take(const std::string& directory, const std::string& who,
                        const std::function<void(const std::string&)>& waits) {
  const std::string path = state_of(directory) + kLockFile;
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail(error_from_errno(errno, "open " + path));
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail(error_from_errno(errno, "lock " + path));
    waits(read_at(file.get(), 0, kLongestHolder).value_or(""));
    while (flock(file.get(), LOCK_EX) != 0)
      if (errno != EINTR) return fail(error_from_errno(errno, "lock " + path));
  }
  // Only for display: if this fails, waiting commands cannot say which one they wait for.
  if (ftruncate(file.get(), 0) == 0) static_cast<void>(write_all_at(file.get(), who.substr(0, kLongestHolder), 0));
  return Lock(HeldLock(std::move(file)));
}

Result<Clone::Seen> Clone::look(const std::string& directory) {
  PLAYFS_TRY(PlainDirectory opened, PlainDirectory::open(directory));
  PLAYFS_CHECK(move_earlier_index(state_of(directory)));
  PLAYFS_TRY(Index index, Index::open(index_in(state_of(directory))));
  PLAYFS_TRY(Look look, clone::look(opened, index));
  return Seen{std::move(opened), std::move(index), std::move(look)};
}

std::unique_ptr<Clone> Clone::open(Seen seen, content::Site& site, vfs::LoneWorkTree& tree) {
  return std::unique_ptr<Clone>(new Clone(std::move(seen), site, tree));
}

Clone::Clone(Seen seen, content::Site& site, vfs::LoneWorkTree& tree)
    : directory_(std::move(seen.directory)), index_(std::move(seen.index)), site_(site), tree_(tree) {
  if (index_.belongs_to(tree.stage_identity())) look_ = std::move(seen.look);
}

Result<content::Blob> Clone::fetch(const FileRef& file) {
  auto here = site_.try_blob(file);
  auto blob = here ? Result<content::Blob>(*std::move(here))
                   : await<content::Blob>([&](auto done) { site_.blob(file, {}, std::move(done)); });
  if (blob) fetched_(blob->size());
  return blob;
}

Status Clone::take_in() {
  TakeIn take_in(tree_.stage(), directory_, index_, [this](const FileRef& rules) -> Status {
    PLAYFS_CHECK(fetch(rules));
    return {};
  });
  if (!look_) {
    PLAYFS_TRY(look_, clone::look(directory_, index_));
  }
  PLAYFS_CHECK(take_in.run(*std::exchange(look_, std::nullopt)));
  unread_ = take_in.unread();
  return {};
}

Status Clone::expect_changes() {
  index_.set_behind(true);
  PLAYFS_CHECK(index_.commit());
  // Nothing may change before this is on the disk: otherwise a power loss might leave an older file in the directory
  // that looks like an edit of the new version.
  return index_.sync();
}

Result<DirectoryState> Clone::state() {
  DirectoryState state;
  PLAYFS_TRY(const auto pending, tree_.stage().pending());
  state.left_out = index_.left_out();
  state.is_interrupted = index_.is_behind() && !pending && state.left_out.empty();
  state.unread = unread_;
  PLAYFS_TRY(state.lost_and_found, directory_.lost_and_found());
  return state;
}

Result<BroughtOut> Clone::bring_out_once() {
  stage::Stage& stage = tree_.stage();
  if (const RevisionTreePtr base = stage.base()) site_.prefetch(base);
  PLAYFS_CHECK(stage.sync(stage.root()));  // so that a power loss cannot take from the stage what is written below
  BringOut bring_out(stage, directory_, index_, [this](const FileRef& file) { return fetch(file); });
  Status brought = bring_out.run();
  const BroughtOut& result = bring_out.result();
  // Before the index says that a file is there: after a power loss, an older one would be taken for a change.
  if (result.written + result.removed > 0) PLAYFS_CHECK(directory_.sync());
  PLAYFS_CHECK(index_.commit());
  if (!brought) return fail(brought.error());
  return result;
}

Result<BroughtOut> Clone::bring_out() {
  BroughtOut all;
  if (!index_.is_behind()) return all;
  for (int round = 0;; ++round) {
    PLAYFS_TRY(BroughtOut now, bring_out_once());
    all.written += now.written;
    all.removed += now.removed;
    std::erase_if(all.left_out, [](const auto& each) { return !each.is_final; });  // tried again in this round
    std::move(now.left_out.begin(), now.left_out.end(), std::back_inserter(all.left_out));
    if (now.contested.empty()) break;
    if (round == kMostRounds)
      return fail(ErrorCode::busy, escape_for_terminal(now.contested.front()) + " keeps changing", "try again");
    PLAYFS_CHECK(take_in());
  }
  // A publication that has not ended changes the stage when the clone is next opened.
  PLAYFS_TRY(const auto pending, tree_.stage().pending());
  index_.set_behind(pending.has_value() || all.lacks_some());
  PLAYFS_CHECK(index_.commit());
  return all;
}

}  // namespace playfs::clone
