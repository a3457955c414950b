// Which letters a folder of `maildir/` has.
#include "vfs/attempt_fetches.h"
#include "vfs/directories/maildir.h"
#include "vfs/published/inbox_fetches.h"

namespace playfs::vfs {

LetterTexts::IsOfThread MaildirFolder::is_of_thread() const {
  return [threads = threads_of_messages_](const std::string& message, const std::string& thread) {
    return threads->is_of(message, thread);
  };
}

bool MaildirFolder::is_inbox() const { return name() == kInbox; }

Attempt<FolderLettersPtr> MaildirFolder::letters(const OperationPtr& op, bool any_age) {
  PLAYFS_ATTEMPT_CHECK(mail::load_library());
  if (!shared_->marks.is_read())
    return missing(on_disk(mount(), [shared = shared_] { return shared->marks.catch_up(); }));
  if (is_inbox()) PLAYFS_ATTEMPT_CHECK(inbox_here(mount(), op, InboxAge::fresh));
  // Mail readers list all folders in turn, and requests for each would return the same.
  const auto get = any_age || is_inbox() ? known_list : fresh_list;
  FolderIndex::Lists lists;
  for (const std::string& collection : collections()) {
    ListPtr& list = collection == "messages" ? lists.messages : collection == "threads" ? lists.threads : lists.mail;
    PLAYFS_ATTEMPT(list, get(mount(), op, collection));
  }
  return settle(lists);
}

void MaildirFolder::tell_left_out() {
  if (told_.exchange(true)) return;
  mount().site().events().error(
      path(), {ErrorCode::refused_input, "shows only the newest " + std::to_string(FolderIndex::kMost) + " letters",
               "threads/ and mail/ have all of them"});
}

FolderLettersPtr MaildirFolder::settle(const FolderIndex::Lists& lists) {
  // Read first. The inbox examines listed records later, and again.
  const std::uint64_t version = is_inbox() ? mount().inbox().version() : 0;
  std::vector<content::Inbox::Entry> entries;
  if (is_inbox()) entries = mount().inbox().entries();
  FolderIndex::Change change;
  FolderLettersPtr now;
  bool is_first = false;
  {
    MutexLock lock(mutex_);
    if (is_known_ && inbox_version_ == version && index_.lists() == lists) return index_.letters();
    is_first = !std::exchange(is_known_, true);
    inbox_version_ = version;
    change = index_.bring_up(lists, entries);
    now = index_.letters();
  }
  mount().metrics().count_letters(change.made);
  if (change.is_left_out) tell_left_out();
  if (is_first) return now;
  std::vector<Name> former;
  for (const FolderLetterPtr& letter : change.gone) former.push_back(name_of(*letter));
  if (!former.empty()) shared_->texts.forget();
  if (!former.empty() || change.made > 0) tell(former);
  return now;
}

}  // namespace playfs::vfs
