#include "vfs/control/request_journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/log.h"
#include "vfs/control/unsent_text.h"
#include "wire/json.h"

namespace playfs::vfs {
namespace {

constexpr std::size_t kLongestFile = 1 << 20;
constexpr std::string_view kLock = ".lock", kRequest = ".json", kDraft = ".draft";
constexpr std::size_t kNameDigits = 16, kOrderDigits = 19;

std::string text_of(const JournalledRequest& request) {
  Json::Array steps;
  for (const RequestStep& step : request.steps)
    steps.push_back(
        JsonObject{{"collection", step.collection}, {"key", step.key}, {"made", step.made}, {"body", step.body}});
  JsonObject object{{"path", request.path},
                    {"begun", format_iso8601(request.begun)},
                    {"told", request.is_told},
                    {"checked", request.is_checked},
                    {"steps", std::move(steps)}};
  if (request.is_caller_known) object.set("caller", request.caller);
  if (!request.draft.empty()) object.set("draft", request.draft);
  return wire::to_text(object);
}

std::string string_in(const JsonObject& object, std::string_view name) {
  const Json* value = object.find(name);
  const std::string* text = value ? value->string() : nullptr;
  return text ? *text : std::string();
}

std::optional<JournalledRequest> parsed(const std::string& text) {
  auto json = wire::parse_json(text);
  const JsonObject* object = json ? json->object() : nullptr;
  const Json* steps = object ? object->find("steps") : nullptr;
  if (!steps || !steps->array()) return std::nullopt;
  const Json* told = object->find("told");
  auto begun = parse_iso8601(string_in(*object, "begun"));
  if (!begun || !told || !told->boolean()) return std::nullopt;
  JournalledRequest request{string_in(*object, "path"), {}, *begun, string_in(*object, "caller")};
  const Json* caller = object->find("caller");
  request.is_caller_known = caller && caller->string();
  request.is_told = *told->boolean();
  const Json* checked = object->find("checked");
  request.is_checked = checked ? checked->boolean().value_or(true) : true;
  request.draft = string_in(*object, "draft");
  for (const Json& each : *steps->array()) {
    const JsonObject* step = each.object();
    const Json* body = step ? step->find("body") : nullptr;
    if (!body || !body->object()) return std::nullopt;
    request.steps.push_back(
        {string_in(*step, "collection"), *body->object(), string_in(*step, "key"), string_in(*step, "made")});
    if (request.steps.back().key.empty()) return std::nullopt;
  }
  return request.steps.empty() ? std::nullopt : std::optional(std::move(request));
}

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

/// The part of a file's name that says whose it is.
std::string owner_of(const std::string& name) { return name.substr(0, name.find('.')); }

std::string draft_of(const std::string& name) {
  const std::size_t begin = owner_of(name).size() + 1;
  return name.substr(begin, name.size() - begin - kDraft.size());
}

/// Of a file of this mount by now, so the next one takes it over.
Error not_read(Error error, const std::string& path) {
  error = error.while_doing("read what was written before the last unmount");
  error.hint = "nothing need be done: the next mount tries again; the text is in " + path;
  return error;
}

}  // namespace

Status RequestJournal::open() {
  {
    MutexLock lock(mutex_);
    if (!own_.empty()) return {};
  }
  PLAYFS_CHECK(make_private_directory(directory_));
  const std::string own = random_.hex(kNameDigits), path = path_of(own + std::string(kLock));
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
      under_way_.insert(same->first);
      told_.erase(same);
    }
    for (const auto& [name, resumed] : resumed_) {
      if (repeated || is_too_old(resumed) || !is_same(resumed, path, steps, caller)) continue;
      repeated = resumed;
      repeated->is_joined = true;
    }
    std::erase_if(answered_,
                  [now = clock_.wall()](const Answered& each) { return is_longer_ago(each.when, now, kJustAnswered); });
    auto just = std::find_if(answered_.begin(), answered_.end(),
                             [&](const Answered& each) { return is_same(each.request, path, steps, caller); });
    if (!repeated && just != answered_.end()) {
      repeated = std::move(just->request);
      repeated->is_resumed = false;  // its answer is known to the log only: lent once
      under_way_.insert(repeated->name);
      answered_.erase(just);
    }
  }
  if (repeated && !is_too_old(*repeated)) {
    repeated->is_told = false;
    repeated->draft = draft;
    if (!std::exchange(repeated->is_caller_known, true)) repeated->caller = caller;
    PLAYFS_CHECK(record(*repeated));
    return std::move(*repeated);
  }
  if (repeated) end(*repeated);
  PLAYFS_CHECK(make_room());
  JournalledRequest request{std::move(path), std::move(steps), clock_.wall(), caller};
  request.draft = draft;
  for (RequestStep& step : request.steps) step.key = random_.uuid();
  {
    MutexLock lock(mutex_);
    request.name = own_ + "." + in_order(order) + "-" + request.steps.front().key + std::string(kRequest);
    under_way_.insert(request.name);
  }
  if (Status written = record(request); !written) {
    end(request);
    return fail(std::move(written).error().while_doing("journal the request, which was not sent"));
  }
  return request;
}

Status RequestJournal::record(const JournalledRequest& request) {
  PLAYFS_CHECK(write_file_atomically(path_of(request.name), text_of(request)));
  MutexLock lock(mutex_);
  if (!request.is_told) {
    auto resumed = resumed_.find(request.name);
    if (resumed != resumed_.end()) resumed->second = request;
    return {};
  }
  resumed_.erase(request.name);
  under_way_.erase(request.name);
  told_.insert_or_assign(request.name, request);
  return {};
}

bool RequestJournal::is_unfinished(const JournalledRequest& request) const {
  MutexLock lock(mutex_);
  return resumed_.contains(request.name);
}

bool RequestJournal::is_checked(const JournalledRequest& request) const {
  if (request.is_checked) return true;
  MutexLock lock(mutex_);
  for (const auto* others : {&resumed_, &told_})
    if (auto other = others->find(request.name); other != others->end()) return other->second.is_checked;
  return std::any_of(answered_.begin(), answered_.end(), [&](const Answered& each) {
    return each.request.name == request.name && each.request.is_checked;
  });
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
  Unsent unsent = keep_unsent(unsent_directory(), request, std::move(why));
  // Only if its writer has not repeated it meanwhile and got the outcome.
  if (!unsent.is_kept || !is_unfinished(request)) return std::move(unsent.why);
  if (is_too_old(request)) {
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
  under_way_.erase(request.name);
  told_.erase(request.name);
  const bool was_resumed = resumed_.erase(request.name) > 0;
  if (request.is_joined) {
    std::erase_if(answered_, [&](const Answered& each) { return each.request.name == request.name; });
  } else if (was_resumed && answered_.size() < kMost) {
    answered_.push_back({request, clock_.wall()});
  }
}

Status RequestJournal::keep_draft(const std::string& draft, const std::string& path, std::string_view text) {
  PLAYFS_CHECK(open());
  const JsonObject object{{"path", path}, {"text", text}};
  auto kept = write_file_atomically(path_of_draft(draft), wire::to_text(object));
  if (!kept) return fail(std::move(kept).error().while_doing("keep the text until it is complete"));
  return {};
}

void RequestJournal::drop_draft(const std::string& draft) {
  const std::string path = path_of_draft(draft);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    log_warning("a text that was sent is still kept: " + error_from_errno(errno, path).message);
}

std::string RequestJournal::path_of_draft(const std::string& draft) const {
  MutexLock lock(mutex_);
  return path_of(own_ + "." + draft + std::string(kDraft));
}

RequestJournal::LeftBehind RequestJournal::left_behind() {
  LeftBehind left;
  std::error_code problem;
  std::set<std::string> locks;
  std::multimap<std::string, std::string> requests;  // by what follows the owner: in their order
  std::multimap<std::string, std::string> drafts;
  for (std::filesystem::directory_iterator entry(directory_, problem), last; !problem && entry != last;
       entry.increment(problem)) {
    std::string name = entry->path().filename().string();
    if (name.ends_with(kLock)) locks.insert(std::move(name));
    else if (name.ends_with(kRequest)) requests.emplace(name.substr(owner_of(name).size()), std::move(name));
    else if (name.ends_with(kDraft)) drafts.emplace(name.substr(owner_of(name).size()), std::move(name));
  }
  if (locks.empty() && requests.empty() && drafts.empty()) return left;
  if (Status opened = open(); !opened) {
    log_warning(opened.error().message);
    return left;
  }
  std::string own;
  {
    MutexLock lock(mutex_);
    own = own_;
  }
  std::map<std::string, UniqueFd> gone;  // locked until its requests are taken over
  for (const std::string& name : locks) {
    if (owner_of(name) == own) continue;
    UniqueFd file(::open(path_of(name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) gone.emplace(owner_of(name), std::move(file));
  }
  // Another mount may be doing the same: the rename works for one of them.
  auto takes_over = [&](const std::string& rest, const std::string& name) {
    const std::string owner = owner_of(name);
    if (owner == own || (!gone.contains(owner) && locks.contains(owner + std::string(kLock)))) return false;
    return ::rename(path_of(name).c_str(), path_of(own + rest).c_str()) == 0;
  };
  for (const auto& [rest, name] : requests)
    if (takes_over(rest, name)) take(own + rest, left);
  std::set<std::string> sent;
  for (const JournalledRequest& request : left.requests) sent.insert(request.draft);
  for (const auto& [rest, name] : drafts)
    if (takes_over(rest, name)) take_draft(own + rest, sent.contains(draft_of(name)), left);
  for (const auto& [owner, file] : gone) ::unlink(path_of(owner + std::string(kLock)).c_str());
  return left;
}

void RequestJournal::take(const std::string& name, LeftBehind& left) {
  auto text = read_file(path_of(name), kLongestFile);
  if (!text && text.error().code != ErrorCode::file_too_big) {
    left.unreadable.push_back(not_read(std::move(text).error(), path_of(name)));
    return;
  }
  auto request = text ? parsed(*text) : std::nullopt;
  if (!request) {
    left.unreadable.push_back(set_aside(name));
    return;
  }
  request->name = name;
  if (request->is_told && is_too_old(*request)) return end(*request);
  MutexLock lock(mutex_);
  if (request->is_told) {
    told_.insert_or_assign(name, std::move(*request));
  } else {
    under_way_.insert(name);
    request->is_resumed = true;
    resumed_.emplace(name, *request);
    left.requests.push_back(std::move(*request));
  }
}

void RequestJournal::take_draft(const std::string& name, bool is_sent, LeftBehind& left) const {
  const std::string path = path_of(name);
  if (is_sent) {
    ::unlink(path.c_str());  // else the next mount comes to the same
    return;
  }
  auto text = read_file(path, kLongestFile);
  if (!text) return left.unreadable.push_back(not_read(std::move(text).error(), path));
  auto draft = wire::parse_json(*text);
  if (!draft || !draft->object()) return left.unreadable.push_back(set_aside(name));
  const std::string written_to = string_in(*draft->object(), "path");
  Unsent unsent = keep_unsent_text(unsent_directory(), draft_of(name), written_to, string_in(*draft->object(), "text"));
  if (unsent.is_kept) ::unlink(path.c_str());
  left.drafts.emplace_back(written_to, std::move(unsent.why));
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
