// Which letters a folder of `maildir/` has.
#include <algorithm>
#include <unordered_map>

#include "mail/maildir.h"
#include "vfs/attempt_fetches.h"
#include "vfs/directories/maildir.h"
#include "vfs/published/inbox_fetches.h"

namespace playfs::vfs {
namespace {

/// The most letters in a folder: the newest.
constexpr std::size_t kMostLetters = 50'000;

}  // namespace

const FolderLetters::Letter* FolderLetters::find(std::string_view unique) const {
  auto found = std::lower_bound(letters.begin(), letters.end(), unique,
                                [](const Letter& each, std::string_view wanted) { return each.unique < wanted; });
  return found == letters.end() || found->unique != unique ? nullptr : &*found;
}

LetterTexts::IsOfThread MaildirFolder::is_of_thread() const {
  MutexLock lock(mutex_);
  return [all = known_](const std::string& message, const std::string& thread) {
    if (!all) return false;
    auto found = all->thread_by_message.find(message);
    return found != all->thread_by_message.end() && found->second == thread;
  };
}

bool MaildirFolder::is_inbox() const { return name() == kInbox; }

Attempt<FolderLettersPtr> MaildirFolder::letters(const OperationPtr& op, bool any_age) {
  if (!shared_->marks.is_read())
    return missing(on_disk(mount(), [shared = shared_] { return shared->marks.catch_up(); }));
  if (is_inbox()) PLAYFS_ATTEMPT_CHECK(inbox_here(mount(), op, InboxAge::fresh));
  // Mail readers list all folders in turn, and requests for each would return the same.
  const auto get = any_age || is_inbox() ? known_list : fresh_list;
  FolderLetters::Lists lists;
  for (const std::string& collection : collections()) {
    ListPtr& list = collection == "messages" ? lists.messages : collection == "threads" ? lists.threads : lists.mail;
    PLAYFS_ATTEMPT(list, get(mount(), op, collection));
  }
  return settle(std::move(lists));
}

FolderLettersPtr MaildirFolder::letters_of(FolderLetters::Lists lists) {
  auto made = std::make_shared<FolderLetters>();
  std::unordered_map<std::string_view, const content::Listed*> threads, mine;
  if (lists.threads) {
    for (const content::Listed& thread : *lists.threads)
      if (is_inbox() || thread.kind == name()) threads.emplace(thread.id, &thread);
  }
  const std::string prefix = is_inbox() ? "i" : "";
  auto add = [&](const content::Listed& of, const content::Listed* thread, std::uint64_t position) {
    const auto letter = mail::maildir_name(of.id, of.created_at, of.updated_at, shared_->domain);
    made->letters.push_back(
        {letter.unique(), prefix + (thread ? "m:" : "d:") + letter.id, kFirstPosition + position, &of, thread});
  };
  auto thread_of = [&](const content::Listed& message) {
    auto found = threads.find(message.project);
    return found == threads.end() ? nullptr : found->second;
  };
  if (is_inbox()) {
    std::unordered_map<std::string_view, const content::Listed*> messages, mails;
    for (const content::Listed& each : *lists.messages) {
      messages.emplace(each.id, &each);
      made->thread_by_message.emplace(each.id, each.project);
    }
    for (const content::Listed& each : *lists.mail) mails.emplace(each.id, &each);
    for (const content::Inbox::Entry& entry : mount().inbox().entries()) {
      const bool is_message = entry.collection == "messages";
      const auto& listed = is_message ? messages : mails;
      auto found = listed.find(entry.id);
      const content::Listed* thread = is_message && found != listed.end() ? thread_of(*found->second) : nullptr;
      if (found != listed.end() && (thread || !is_message)) add(*found->second, thread, entry.position);
    }
  } else {
    const ListPtr& list = lists.messages ? lists.messages : lists.mail;
    for (std::size_t at = 0; at < list->size(); ++at) {
      const content::Listed* thread = lists.messages ? thread_of((*list)[at]) : nullptr;
      if (lists.messages && !thread) continue;
      if (thread) made->thread_by_message.emplace((*list)[at].id, thread->id);
      if (made->letters.size() == kMostLetters) {
        tell_left_out();
        break;
      }
      // Counted from the oldest.
      add((*list)[at], thread, list->size() - at);
    }
  }
  std::sort(made->letters.begin(), made->letters.end(),
            [](const auto& a, const auto& b) { return a.unique < b.unique; });
  made->lists = std::move(lists);
  return made;
}

void MaildirFolder::tell_left_out() {
  if (told_.exchange(true)) return;
  mount().site().events().error(
      path(), {ErrorCode::refused_input, "shows only the newest " + std::to_string(kMostLetters) + " letters",
               "threads/ and mail/ have all of them"});
}

FolderLettersPtr MaildirFolder::settle(FolderLetters::Lists lists) {
  // The inbox may not have examined all listed records yet.
  const bool is_sure = !is_inbox() || mount().inbox().has_taken({lists.messages, lists.threads, lists.mail});
  {
    MutexLock lock(mutex_);
    if (known_ && is_sure_ && known_->lists == lists) return known_;
  }
  FolderLettersPtr now = letters_of(std::move(lists)), before;
  {
    MutexLock lock(mutex_);
    before = std::exchange(known_, now);
    is_sure_ = is_sure;
  }
  if (!before) return now;
  const std::vector<Name> former = outdated(*before, *now);
  if (!former.empty()) shared_->texts.forget();
  if (!former.empty() || before->letters.size() != now->letters.size()) tell(former);
  return now;
}

std::vector<MaildirFolder::Name> MaildirFolder::outdated(const FolderLetters& before, const FolderLetters& now) const {
  std::vector<Name> names;
  for (const FolderLetters::Letter& letter : before.letters) {
    const FolderLetters::Letter* same = now.find(letter.unique);
    const bool has_same_title = same && (!same->thread || same->thread->name == letter.thread->name);
    if (!has_same_title) names.push_back(name_of(letter));
  }
  return names;
}

}  // namespace playfs::vfs
