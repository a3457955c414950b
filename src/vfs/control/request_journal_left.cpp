// What the journal of a mount that is gone had left.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>

#include "base/log.h"
#include "vfs/control/journal_entry.h"
#include "vfs/control/request_journal.h"
#include "vfs/control/unsent_text.h"

namespace playfs::vfs {
namespace {

std::string draft_of(const std::string& name) {
  const std::size_t begin = owner_of(name).size() + 1;
  return name.substr(begin, name.size() - begin - kDraftSuffix.size());
}

/// Of a file of this mount by now, so the next one takes it over.
Error not_read(Error error, const std::string& path) {
  error = error.while_doing("read what was written before the last unmount");
  error.hint = "nothing need be done: the next mount tries again; the text is in " + path;
  return error;
}

}  // namespace

RequestJournal::LeftBehind RequestJournal::left_behind() {
  LeftBehind left;
  std::error_code problem;
  std::set<std::string> locks;
  std::multimap<std::string, std::string> requests;  // by what follows the owner: in their order
  std::multimap<std::string, std::string> drafts;
  for (std::filesystem::directory_iterator entry(directory_, problem), last; !problem && entry != last;
       entry.increment(problem)) {
    std::string name = entry->path().filename().string();
    if (name.ends_with(kLockSuffix)) locks.insert(std::move(name));
    else if (name.ends_with(kRequestSuffix)) requests.emplace(name.substr(owner_of(name).size()), std::move(name));
    else if (name.ends_with(kDraftSuffix)) drafts.emplace(name.substr(owner_of(name).size()), std::move(name));
  }
  if (locks.empty() && requests.empty() && drafts.empty()) return left;
  if (Status opened = open(); !opened) {
    log_warning(opened.error().message);
    return left;
  }
  const std::string own = own_name();
  std::map<std::string, UniqueFd> gone;  // locked until its requests are taken over
  for (const std::string& name : locks) {
    if (owner_of(name) == own) continue;
    UniqueFd file(::open(path_of(name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) gone.emplace(owner_of(name), std::move(file));
  }
  // Another mount may be doing the same: the rename works for one of them.
  auto takes_over = [&](const std::string& rest, const std::string& name) {
    const std::string owner = owner_of(name);
    if (owner == own || (!gone.contains(owner) && locks.contains(owner + std::string(kLockSuffix)))) return false;
    return ::rename(path_of(name).c_str(), path_of(own + rest).c_str()) == 0;
  };
  for (const auto& [rest, name] : requests)
    if (takes_over(rest, name)) take(own + rest, left);
  std::set<std::string> sent;
  for (const JournalledRequest& request : left.requests) sent.insert(request.draft);
  for (const auto& [rest, name] : drafts)
    if (takes_over(rest, name)) take_draft(own + rest, sent.contains(draft_of(name)), left);
  for (const auto& [owner, file] : gone) ::unlink(path_of(owner + std::string(kLockSuffix)).c_str());
  return left;
}

void RequestJournal::take(const std::string& name, LeftBehind& left) {
  auto text = read_file(path_of(name), kLongestEntry);
  if (!text && text.error().code != ErrorCode::file_too_big) {
    left.unreadable.push_back(not_read(std::move(text).error(), path_of(name)));
    return;
  }
  auto request = text ? parsed_entry(*text) : std::nullopt;
  if (!request) {
    left.unreadable.push_back(set_aside(name));
    return;
  }
  request->name = name;
  if (request->is_told && is_too_old(*request)) return forget(*request, left);
  MutexLock lock(mutex_);
  if (request->is_told) {
    told_.insert_or_assign(name, std::move(*request));
  } else {
    under_way_[name] = {*request};
    request->is_resumed = true;
    resumed_.emplace(name, *request);
    left.requests.push_back(std::move(*request));
  }
}

void RequestJournal::forget(const JournalledRequest& request, LeftBehind& left) {
  // Earlier versions counted plain text as told although nobody had read its outcome.
  if (request.is_of_earlier_version) {
    Unsent unsent = keep_unsent(directory_, request, {},
                                {ErrorCode::timed_out, "a request that was written a day ago had no answer"});
    left.drafts.emplace_back(request.path, std::move(unsent.why));
    if (!unsent.is_kept) return;  // the next mount tries again
  }
  end(request);
}

void RequestJournal::take_draft(const std::string& name, bool is_sent, LeftBehind& left) const {
  const std::string path = path_of(name);
  if (is_sent) {
    ::unlink(path.c_str());  // else the next mount comes to the same
    return;
  }
  auto text = read_file(path, kLongestEntry);
  if (!text) return left.unreadable.push_back(not_read(std::move(text).error(), path));
  auto draft = parsed_draft(*text);
  if (!draft) return left.unreadable.push_back(set_aside(name));
  Unsent unsent =
      keep_unsent_text(directory_, draft_of(name), *draft, user_, {},
                       {ErrorCode::interrupted, "what was written here last was not sent, since the mount ended first",
                        "see whether it is all of it"});
  if (unsent.is_kept) ::unlink(path.c_str());
  left.drafts.emplace_back(draft->path, std::move(unsent.why));
}

Error RequestJournal::set_aside(const std::string& name) const {
  const std::string aside = unsent_directory() + "/damaged" + name.substr(owner_of(name).size());
  Error error{ErrorCode::corrupt,
              "a request that was written before the last unmount was not sent: its journal is damaged",
              "see whether it has arrived; else write it again"};
  Status moved = make_private_directory(unsent_directory());
  if (moved && ::rename(path_of(name).c_str(), aside.c_str()) != 0)
    moved = fail(error_from_errno(errno, "move it to " + aside));
  if (moved) moved = sync_directory(unsent_directory());
  error.message += moved ? "; what is left of it is in " + aside
                         : "; what is left of it is in " + path_of(name) + ": " + moved.error().message;
  return error;
}

}  // namespace playfs::vfs
