#include "vfs/control/request_journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>

#include "base/log.h"
#include "vfs/control/control_text.h"
#include "vfs/control/journal_entry.h"
#include "vfs/control/unsent_text.h"

namespace playfs::vfs {
namespace {

constexpr std::size_t kNameDigits = 16, kOrderDigits = 19;

/// Whether a write of `steps` by `caller` repeats the journalled request. A request without an account may be repeated
/// by anybody.
bool is_same(const JournalledRequest& told, const std::string& path, const std::vector<RequestStep>& steps,
             const std::string& caller) {
  return told.path == path && (told.caller.empty() || told.caller == caller) &&
         std::equal(told.steps.begin(), told.steps.end(), steps.begin(), steps.end(),
                    [](const RequestStep& a, const RequestStep& b) {
                      return a.collection == b.collection && a.body == b.body;
                    });
}

bool is_longer_ago(WallTime then, WallTime now, std::chrono::nanoseconds limit) {
  return now.nanoseconds - then.nanoseconds > limit.count();
}

/// Text that sorts like the number.
std::string in_order(std::int64_t order) {
  const std::string digits = std::to_string(order);
  return std::string(kOrderDigits - std::min(kOrderDigits, digits.size()), '0') + digits;
}

}  // namespace

Status RequestJournal::open() {
  {
    MutexLock lock(mutex_);
    if (!own_.empty()) return {};
  }
  PLAYFS_CHECK(make_private_directory(directory_));
  const std::string own = random_.hex(kNameDigits), path = path_of(own + std::string(kLockSuffix));
  // Locked before it gets its name, so that no other mount takes it over as left behind.
  const std::string unlocked = path + ".new";
  UniqueFd file(::open(unlocked.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (!file || ::flock(file.get(), LOCK_EX) != 0 || ::rename(unlocked.c_str(), path.c_str()) != 0)
    return fail(error_from_errno(errno, "journal a request in " + directory_));
  MutexLock lock(mutex_);
  if (!own_.empty()) {
    ::unlink(path.c_str());
    return {};
  }
  own_ = own;
  lock_ = std::move(file);
  return {};
}

Status RequestJournal::make_room() {
  JournalledRequest dropped;
  {
    MutexLock lock(mutex_);
    if (under_way_.size() + told_.size() < kMost) return {};
    auto oldest = std::min_element(told_.begin(), told_.end(), [](const auto& a, const auto& b) {
      return a.second.begun.nanoseconds < b.second.begun.nanoseconds;
    });
    if (oldest == told_.end())
      return fail(ErrorCode::busy, std::to_string(kMost) + " requests are waiting for their outcome",
                  "wait for some of them");
    dropped = oldest->second;
  }
  end(dropped);
  return {};
}

Result<JournalledRequest> RequestJournal::begin(std::string path, std::vector<RequestStep> steps, std::int64_t order,
                                                const std::string& caller, const std::string& draft) {
  PLAYFS_CHECK(open());
  drop_taken_over();
  std::optional<JournalledRequest> repeated;
  {
    MutexLock lock(mutex_);
    // Prefer the caller's own request to one without an account.
    auto same = told_.end();
    for (auto told = told_.begin(); told != told_.end(); ++told)
      if (is_same(told->second, path, steps, caller) && (same == told_.end() || told->second.caller == caller))
        same = told;
    if (same != told_.end()) {
      repeated = std::move(same->second);
      under_way_[same->first] = {};
      told_.erase(same);
    }
    for (const auto& [name, resumed] : resumed_) {
      if (repeated || is_too_old(resumed) || !is_same(resumed, path, steps, caller)) continue;
      repeated = resumed;
      repeated->is_joined = true;
    }
    for (const auto& [name, other] : under_way_) {
      if (repeated || !other.is_left || !is_same(other.request, path, steps, caller)) continue;
      repeated = other.request;
      repeated->is_joined = true;
    }
    std::erase_if(answered_,
                  [now = clock_.wall()](const Answered& each) { return is_longer_ago(each.when, now, kJustAnswered); });
    auto just = std::find_if(answered_.begin(), answered_.end(),
                             [&](const Answered& each) { return is_same(each.request, path, steps, caller); });
    if (!repeated && just != answered_.end()) {
      repeated = std::move(just->request);
      repeated->is_resumed = false;  // its answer is known to the log only: lent once
      under_way_[repeated->name] = {};
      answered_.erase(just);
    }
  }
  if (!repeated) repeated = of_another_mount(path, steps, caller);
  if (repeated && !is_too_old(*repeated)) {
    repeated->is_told = false;
    repeated->draft = draft;
    if (!std::exchange(repeated->is_caller_known, true)) repeated->caller = caller;
    // It is addressed as it is written now, also for those who have a copy of it. But what is on its way by its id goes
    // on: this writer's title is checked for this writer.
    std::string& title = repeated->steps.front().thread_title;
    if (!repeated->is_joined || !title.empty()) title = steps.front().thread_title;
    PLAYFS_CHECK(write(*repeated));
    return std::move(*repeated);
  }
  if (repeated) end(*repeated);
  PLAYFS_CHECK(make_room());
  JournalledRequest request{std::move(path), std::move(steps), clock_.wall(), caller};
  request.draft = draft;
  for (RequestStep& step : request.steps) step.key = random_.uuid();
  {
    MutexLock lock(mutex_);
    request.name = own_ + "." + in_order(order) + "-" + request.steps.front().key + std::string(kRequestSuffix);
    under_way_[request.name] = {};
  }
  if (Status written = write(request); !written) {
    end(request);
    return fail(std::move(written).error().while_doing("journal the request, which was not sent"));
  }
  return request;
}

void RequestJournal::drop_taken_over() {
  std::vector<std::string> names, gone;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, request] : told_) names.push_back(name);
  }
  for (const std::string& name : names)
    if (::access(path_of(name).c_str(), F_OK) != 0) gone.push_back(name);
  MutexLock lock(mutex_);
  for (const std::string& name : gone) told_.erase(name);
}

std::optional<JournalledRequest> RequestJournal::of_another_mount(const std::string& path,
                                                                  const std::vector<RequestStep>& steps,
                                                                  const std::string& caller) {
  const std::string own = own_name();
  std::error_code problem;
  for (std::filesystem::directory_iterator entry(directory_, problem), last; !problem && entry != last;
       entry.increment(problem)) {
    const std::string name = entry->path().filename().string();
    if (!name.ends_with(kRequestSuffix) || owner_of(name) == own) continue;
    auto text = read_file(path_of(name), kLongestEntry);
    auto request = text ? parsed_entry(*text) : std::nullopt;
    const bool is_open = request && (request->is_told || request->is_resumed) && !is_too_old(*request);
    if (!is_open || !is_same(*request, path, steps, caller)) continue;
    request->name = own + name.substr(owner_of(name).size());
    // What the other mount sends again by itself stays there as well: with one key it arrives once.
    if (request->is_told && ::rename(path_of(name).c_str(), path_of(request->name).c_str()) != 0) continue;
    request->is_resumed = false;
    MutexLock lock(mutex_);
    under_way_[request->name] = {};
    return request;
  }
  return std::nullopt;
}

const JournalledRequest* RequestJournal::unfinished(const std::string& name) const {
  if (auto sent = resumed_.find(name); sent != resumed_.end()) return &sent->second;
  const auto sent = under_way_.find(name);
  return sent == under_way_.end() || sent->second.request.steps.empty() ? nullptr : &sent->second.request;
}

void RequestJournal::take_title(JournalledRequest& request) const {
  if (const JournalledRequest* now = unfinished(request.name))
    request.steps.front().thread_title = now->steps.front().thread_title;
}

Status RequestJournal::record(JournalledRequest request) {
  {
    MutexLock lock(mutex_);
    take_title(request);
  }
  return write(request);
}

void RequestJournal::readdress(const std::string& thread, const std::string& from, const std::string& to) {
  std::vector<JournalledRequest> waiting;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, under_way] : under_way_) {
      const JournalledRequest* request = unfinished(name);
      if (!request) continue;
      const RequestStep& first = request->steps.front();
      if (!first.thread_title.empty() && first.thread_title == from && text_field(first.body, "thread") == thread)
        waiting.push_back(*request);
    }
  }
  for (JournalledRequest& request : waiting) {
    request.steps.front().thread_title = to;
    if (!is_unfinished(request)) continue;
    if (Status written = write(request); !written)
      log_warning("a request is still addressed by the thread's old title: " + written.error().message);
  }
}

Status RequestJournal::write(const JournalledRequest& request) {
  PLAYFS_CHECK(write_file_atomically(path_of(request.name), entry_text(request)));
  MutexLock lock(mutex_);
  if (!request.is_told) {
    if (auto sent = under_way_.find(request.name); sent != under_way_.end()) sent->second.request = request;
    if (auto sent = resumed_.find(request.name); sent != resumed_.end()) sent->second = request;
    return {};
  }
  resumed_.erase(request.name);
  under_way_.erase(request.name);
  told_.insert_or_assign(request.name, request);
  return {};
}

Status RequestJournal::keep_sending(JournalledRequest& request) {
  request.is_resumed = true;
  {
    MutexLock lock(mutex_);
    take_title(request);
    resumed_.insert_or_assign(request.name, request);
  }
  return write(request);
}

bool RequestJournal::is_sent_again(const JournalledRequest& request) const {
  MutexLock lock(mutex_);
  return resumed_.contains(request.name);
}

void RequestJournal::set_left(const std::string& draft, bool is_left) {
  MutexLock lock(mutex_);
  for (auto& [name, other] : under_way_)
    if (other.request.draft == draft) other.is_left = is_left;
}

bool RequestJournal::is_unfinished(const JournalledRequest& request) const {
  MutexLock lock(mutex_);
  return under_way_.contains(request.name);
}

bool RequestJournal::may_have_arrived(const JournalledRequest& request) const {
  if (request.may_have_arrived) return true;
  MutexLock lock(mutex_);
  for (const auto* others : {&resumed_, &told_})
    if (auto other = others->find(request.name); other != others->end()) return other->second.may_have_arrived;
  return std::any_of(answered_.begin(), answered_.end(), [&](const Answered& each) {
    return each.request.name == request.name && each.request.may_have_arrived;
  });
}

std::string RequestJournal::thread_title(const JournalledRequest& request) const {
  MutexLock lock(mutex_);
  const auto resumed = resumed_.find(request.name);
  return (resumed == resumed_.end() ? request : resumed->second).steps.front().thread_title;
}

bool RequestJournal::is_too_old(const JournalledRequest& request) const {
  return is_longer_ago(request.begun, clock_.wall(), kLongest);
}

Status RequestJournal::may_be_sent(const JournalledRequest& request) const {
  if (is_too_old(request))
    return fail(ErrorCode::timed_out, "a request that was written before the last unmount is too old to be sent");
  if (!request.is_caller_known)
    return fail(ErrorCode::permission_denied,
                "a request that was written before the last unmount is not sent, since an earlier version of playfs "
                "did not record who was signed in");
  return {};
}

Error RequestJournal::give_up(JournalledRequest request, Error why) {
  const bool was_never_sent = is_refused_here(why) && !request.may_have_arrived;
  Unsent unsent = keep_unsent(directory_, request, saved_of(request.draft), std::move(why));
  // Only if its writer has not repeated it meanwhile and got the outcome.
  if (!unsent.is_kept || !is_unfinished(request)) return std::move(unsent.why);
  if (was_never_sent || is_too_old(request)) {
    end(request);
    return std::move(unsent.why);
  }
  request.is_told = true;
  if (Status written = record(request); !written)
    log_warning("a request that was given up is still journalled: " + written.error().message);
  return std::move(unsent.why);
}

void RequestJournal::end(const JournalledRequest& request) {
  if (::unlink(path_of(request.name).c_str()) != 0 && errno != ENOENT)
    log_warning("a request is still journalled: " + error_from_errno(errno, path_of(request.name)).message);
  MutexLock lock(mutex_);
  auto sent = under_way_.extract(request.name);
  const bool was_left = !sent.empty() && sent.mapped().is_left;
  told_.erase(request.name);
  const bool was_resumed = resumed_.erase(request.name) > 0;
  if (request.is_joined) {
    std::erase_if(answered_, [&](const Answered& each) { return each.request.name == request.name; });
  } else if ((was_resumed || was_left) && answered_.size() < kMost) {
    answered_.push_back({request, clock_.wall()});
  }
}

Status RequestJournal::keep_draft(const std::string& draft, const std::string& path, std::string_view text) {
  PLAYFS_CHECK(open());
  const std::string file = path_of_draft(draft), entry = draft_text({path, std::string(text), user_.agent});
  {
    MutexLock lock(mutex_);
    admitted_.erase(draft);  // it may have grown since
  }
  if (Status has_room = check_room(directory_, entry.size(), file); !has_room && !admit_saved(draft, text))
    return has_room;
  auto kept = write_file_atomically(file, entry);
  if (!kept) return fail(std::move(kept).error().while_doing("keep the text until it is complete"));
  return {};
}

bool RequestJournal::admit_saved(const std::string& draft, std::string_view text) {
  const std::vector<std::string> texts = unsent_texts(unsent_directory());
  MutexLock lock(mutex_);
  for (auto each = admitted_.begin(); each != admitted_.end();)
    each = is_in_use(each->first) ? std::next(each) : admitted_.erase(each);
  for (const std::string& path : texts) {
    const bool is_taken =
        std::any_of(admitted_.begin(), admitted_.end(), [&](const auto& each) { return each.second.path == path; });
    if (is_taken || !is_saved_as(path, text)) continue;
    admitted_[draft] = {path, std::string(text)};
    return true;
  }
  return false;
}

bool RequestJournal::is_in_use(const std::string& draft) const {
  auto is_of_draft = [&](const JournalledRequest& request) { return request.draft == draft; };
  return ::access(path_of(own_ + "." + draft + std::string(kDraftSuffix)).c_str(), F_OK) == 0 ||
         std::any_of(under_way_.begin(), under_way_.end(),
                     [&](const auto& each) { return is_of_draft(each.second.request); }) ||
         std::any_of(resumed_.begin(), resumed_.end(), [&](const auto& each) { return is_of_draft(each.second); });
}

std::optional<SavedText> RequestJournal::saved_of(const std::string& draft) const {
  MutexLock lock(mutex_);
  const auto admitted = admitted_.find(draft);
  return admitted == admitted_.end() ? std::nullopt : std::optional(admitted->second);
}

void RequestJournal::drop_draft(const std::string& draft) {
  const std::string path = path_of_draft(draft);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    log_warning("a text that was sent is still kept: " + error_from_errno(errno, path).message);
}

Error RequestJournal::give_up_draft(const std::string& draft, const std::string& path, const std::string& text,
                                    Error why) {
  const DraftEntry entry{path, text, user_.agent};
  Unsent unsent = keep_unsent_text(directory_, draft, entry, user_, saved_of(draft), std::move(why));
  if (unsent.is_kept) drop_draft(draft);
  return std::move(unsent.why);
}

std::string RequestJournal::own_name() const {
  MutexLock lock(mutex_);
  return own_;
}

std::string RequestJournal::path_of_draft(const std::string& draft) const {
  return path_of(own_name() + "." + draft + std::string(kDraftSuffix));
}

}  // namespace playfs::vfs
