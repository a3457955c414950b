#include "app/inbox_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "app/author.h"
#include "app/interrupted_after.h"
#include "app/json_fields.h"
#include "app/mount_status.h"
#include "base/await.h"
#include "content/inbox.h"
#include "content/inbox_marks.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::app {

namespace {

constexpr std::string_view kEnding = ".json";
/// The polling interval where a look sends no request.
constexpr std::chrono::milliseconds kLookEvery{300};
/// The polling interval where it does.
constexpr std::chrono::seconds kAskEvery{3};
/// How long a service may send nothing before known data is used or, if there is none, before it counts as away. A long
/// list does not count as silence: each of its pages is an answer.
constexpr std::chrono::seconds kSilence{5}, kSilenceAtFirst{15};
/// The least time that a look may take, even if the caller's deadline is near or past: otherwise a healthy service
/// would seem not to answer.
constexpr std::chrono::seconds kLastLook{2};

InboxSource::Time last_look(InboxSource::Time by, InboxSource::Time now) { return std::max(by, now + kLastLook); }

class InboxOfMount final : public InboxSource {
 public:
  explicit InboxOfMount(std::string mount_point) : top_(std::move(mount_point)), inbox_(top_ + "/inbox") {}

  Result<std::vector<Entry>> entries(bool all, Time by) override {
    const Time now = std::chrono::steady_clock::now();
    const InterruptedAfter limit(std::min<std::chrono::nanoseconds>(last_look(by, now) - now, kSilenceAtFirst));
    // Taken before the entries are read, so that anything that arrives later differs from it.
    seen_ = look();
    std::vector<Entry> found;
    Status listed;
    if (all) listed = list("/seen", true, found);
    if (listed) listed = list("/new", false, found);
    if (listed) return found;
    if (limit.is_over())
      return fail(ErrorCode::timed_out, "the mount at " + top_ + " waits for its service, which does not answer",
                  "try again later; cat " + top_ + "/.playfs/status");
    return fail(std::move(listed).error());
  }
  /// The mount has its own patience, and says in its status what it is waiting for.
  [[nodiscard]] bool is_silent() const override { return false; }
  Result<Record> record(const Entry& entry) override {
    PLAYFS_TRY(JsonObject document, read_json_object(path_of(entry)));
    return wire::decode_record(std::move(document));
  }
  Result<bool> claim(const Entry& entry) override {
    const std::string from = path_of({entry.id, false}), to = path_of({entry.id, true});
    bool was_interrupted = false;
    while (std::rename(from.c_str(), to.c_str()) != 0) {
      // The interrupted attempt may have marked the entry. Showing it twice is better than never.
      if (errno == ENOENT) return was_interrupted;
      if (errno != EINTR) return fail(error_from_errno(errno, "mark " + from));
      was_interrupted = true;
    }
    return true;
  }
  Status give_back(const Entry& entry) override {
    if (std::rename(path_of({entry.id, true}).c_str(), path_of({entry.id, false}).c_str()) == 0) return {};
    return fail(error_from_errno(errno, "take back the mark of " + path_of(entry)));
  }
  std::string title_of_thread(const std::string& thread) override {
    // Strangers choose this text, which becomes part of a path. No id has a "/".
    if (thread.find('/') != std::string::npos) return {};
    auto document = read_json_object(top_ + "/threads/" + thread + "/thread.json");
    return document ? text_of(*document, "title") : std::string();
  }
  /// Nothing is kept open, which would keep the mount from being unmounted.
  void wait(std::chrono::milliseconds most) override {
    const auto end = std::chrono::steady_clock::now() + most;
    const InterruptedAfter limit(most);
    const auto every = is_told_of_changes(top_) ? kLookEvery : std::chrono::milliseconds(kAskEvery);
    do std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(every, most));
    while (look() == seen_ && std::chrono::steady_clock::now() < end);
  }

 private:
  [[nodiscard]] std::string path_of(const Entry& entry) const {
    return inbox_ + (entry.is_seen ? "/seen/" : "/new/") + entry.id + std::string(kEnding);
  }
  /// Changes whenever the inbox does: the file grows, or is replaced when it gets too long.
  [[nodiscard]] std::pair<ino_t, off_t> look() const {
    struct stat now {};
    return ::stat((inbox_ + "/messages.ndjson").c_str(), &now) == 0 ? std::pair(now.st_ino, now.st_size)
                                                                    : std::pair<ino_t, off_t>();
  }
  Status list(const char* folder, bool is_seen, std::vector<Entry>& found) const {
    std::error_code problem;
    for (std::filesystem::directory_iterator entry(inbox_ + folder, problem), last; !problem && entry != last;
         entry.increment(problem)) {
      std::string name = entry->path().filename().string();
      if (name.ends_with(kEnding)) found.push_back({name.substr(0, name.size() - kEnding.size()), is_seen});
    }
    if (problem) return fail(error_from_errno(problem.value(), "list " + inbox_ + folder));
    return {};
  }

  const std::string top_, inbox_;
  std::pair<ino_t, off_t> seen_;
};

class InboxOfSite final : public InboxSource {
 public:
  InboxOfSite(OpenStack stack, const std::string& agent, const std::string& state)
      : stack_(std::move(stack)), inbox_(stack_->site(), stack_->clock(), agent, state), marks_(state, agent) {}

  Result<std::vector<Entry>> entries(bool all, Time by) override {
    asked_at_ = stack_->clock().steady();
    by_ = last_look(by, asked_at_);
    is_silent_ = false;
    // Messages first, so that the threads they are in are listed.
    content::Inbox::Lists lists;
    Status unknown;
    for (auto [collection, list] :
         {std::pair(kLists[0], &lists.messages), {kLists[1], &lists.threads}, {kLists[2], &lists.mail}}) {
      auto now = current(collection);
      if (now) *list = std::move(*now);
      // A list that was empty is not stored, so it may be unknown here; entries from the other lists are shown
      // nevertheless.
      else if (is_outage(now.error().code)) unknown = fail(std::move(now).error());
      else return fail(std::move(now).error());
    }
    if (!unknown && !lists.messages && !lists.threads && !lists.mail) return fail(std::move(unknown).error());
    is_silent_ = is_silent_ || !unknown;
    PLAYFS_CHECK(take(lists));
    PLAYFS_CHECK(marks_.refresh());
    std::vector<Entry> seen, fresh;
    for (const content::Inbox::Entry& entry : inbox_.entries()) {
      const bool is_seen = marks_.is_seen(entry.id, entry.at);
      (is_seen ? seen : fresh).push_back({entry.id, is_seen});
    }
    if (!all) return fresh;
    seen.insert(seen.end(), fresh.begin(), fresh.end());
    return seen;
  }
  Result<Record> record(const Entry& entry) override {
    const auto found = inbox_.find(entry.id);
    if (!found) return fail(ErrorCode::not_found, "the inbox has no '" + entry.id + "'");
    auto stored = stack_->site().try_record(found->collection, found->id);
    const bool may_be_lost = stack_->site().is_list_lacking(found->collection) && !is_silent_;
    if (stored && !may_be_lost) return std::move(*stored);
    by_ = Time::max();  // what was found in time is shown
    // Restart the clock: the reader may have taken long over the entries written so far.
    if (!is_silent_) asked_at_ = stack_->clock().steady();
    auto came = record_of(found->collection, found->id);
    if (!came && came.error().code == ErrorCode::not_found) inbox_.is_gone({found->collection, found->id, {}});
    if (!came && came.error().code == ErrorCode::timed_out && stored) return std::move(*stored);
    return came;
  }
  [[nodiscard]] bool is_silent() const override { return is_silent_; }
  Result<bool> claim(const Entry& entry) override {
    const auto found = inbox_.find(entry.id);
    if (!found) return false;
    PLAYFS_CHECK(inbox_.save_before_mark());
    return marks_.mark(found->id, found->at, true);
  }
  Status give_back(const Entry& entry) override {
    if (const auto found = inbox_.find(entry.id)) PLAYFS_CHECK(marks_.mark(found->id, found->at, false));
    return {};
  }
  std::string title_of_thread(const std::string& thread) override {
    auto record = stack_->site().try_record("threads", thread);
    return record ? text_of(record->fields, "title") : std::string();
  }
  void wait(std::chrono::milliseconds most) override {
    const bool is_told = std::all_of(std::begin(kLists), std::end(kLists),
                                     [&](const char* list) { return stack_->site().is_list_told(list); });
    std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(most, is_told ? kLookEvery : kAskEvery));
  }

 private:
  static constexpr const char* kLists[] = {"messages", "threads", "domain_mail"};

  Result<content::ListPtr> current(const std::string& collection) {
    content::Site& site = stack_->site();
    site.follow_list(collection);
    content::ListPtr known = site.try_list(collection);
    if (known && site.is_list_told(collection)) return known;
    auto list = answered<content::ListPtr>(
        known || is_silent_ ? kSilence : kSilenceAtFirst,
        [&](CancelToken cancel, auto done) { site.list(collection, std::move(cancel), std::move(done)); });
    if (!list && list.error().code == ErrorCode::timed_out && known) return known;
    return list;
  }
  Result<Record> record_of(const std::string& collection, const std::string& id) {
    return answered<Record>(kSilence, [&](CancelToken cancel, auto done) {
      stack_->site().record(collection, id, std::move(cancel), std::move(done));
    });
  }
  /// The answer of the service. Fails if the service sends nothing for `most`, or does not answer by `by_`.
  template <class T, class Start>
  Result<T> answered(std::chrono::seconds most, const Start& start) {
    auto left = [&] {
      const SteadyTime heard = std::max(asked_at_, stack_->site().patience().answered_at());
      return std::min(heard + most, by_) - stack_->clock().steady();
    };
    if (auto answer = await_while<T>(left, start)) return std::move(*answer);
    is_silent_ = true;
    return fail(ErrorCode::timed_out, stack_->source().text + " does not answer", "try again later");
  }
  /// Examines what is new; what cannot be read now is left for the next time.
  Status take(const content::Inbox::Lists& lists) {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (const content::Inbox::Missing& missing : inbox_.take(lists, {})) {
        auto came = record_of(missing.collection, missing.id);
        const bool is_gone = !came && came.error().code == ErrorCode::not_found;
        if (is_gone) inbox_.is_gone(missing);
        goes_on = goes_on || came || is_gone;
      }
    }
    return inbox_.is_to_be_saved() ? inbox_.save() : Status();
  }

  const OpenStack stack_;
  content::Inbox inbox_;
  content::InboxMarks marks_;
  SteadyTime asked_at_{};  ///< since when the service may have been silent
  Time by_ = Time::max();
  bool is_silent_ = false;
};

}  // namespace

std::unique_ptr<InboxSource> inbox_of_mount(const MountedPlace& place) {
  return std::make_unique<InboxOfMount>(place.mount_point);
}

Result<std::unique_ptr<InboxSource>> inbox_of_site(CommandContext& context, const std::string& agent, bool wakes) {
  PLAYFS_TRY(auto stack, context.open_to_look());
  if (wakes) stack->site().use_events(stack->random());
  PLAYFS_TRY(std::string state, stack->state_directory());
  std::unique_ptr<InboxSource> source =
      std::make_unique<InboxOfSite>(std::move(stack), agent, state + runtime::kMountState + content::kInboxState);
  return source;
}

Result<InboxFound> find_inbox(CommandContext& context, const std::optional<std::string>& wanted, bool wakes) {
  PLAYFS_TRY(const runtime::Source site, context.source());
  PLAYFS_TRY(const std::string agent, context.agent(wanted, site.text));
  if (auto around = mount_around(context, site.text); around && *around) {
    auto of_mount = author_of_mount(**around);
    // A mount of a single project has none.
    std::error_code problem;
    const bool has_inbox = std::filesystem::exists((*around)->mount_point + "/inbox", problem);
    if (of_mount && of_mount->handle == agent && has_inbox) return InboxFound{agent, inbox_of_mount(**around)};
  }
  if (agent.empty()) return fail(ErrorCode::invalid_argument, "whose inbox? There is no agent", "--agent HANDLE");
  PLAYFS_TRY(auto source, inbox_of_site(context, agent, wakes));
  return InboxFound{agent, std::move(source)};
}

Result<InboxItem> read_item(InboxSource& source, const InboxSource::Entry& entry) {
  PLAYFS_TRY(Record record, source.record(entry));
  InboxItem shown{entry, std::move(record), {}, false};
  const std::string thread = text_of(shown.record.fields, "thread");
  shown.is_mail = thread.empty() && shown.record.fields.find("owner_reply") != nullptr;
  shown.title = shown.is_mail ? text_of(shown.record.fields, "subject") : source.title_of_thread(thread);
  return shown;
}

}  // namespace playfs::app
