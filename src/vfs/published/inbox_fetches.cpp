#include "vfs/published/inbox_fetches.h"

#include <atomic>

#include "base/log.h"
#include "vfs/attempt_fetches.h"
#include "vfs/published/list_fetches.h"

namespace playfs::vfs {
namespace {

using content::Inbox;

constexpr const char* kTaken = "inbox/taken";

/// Lets the inbox examine what is new. Records that are listed but not stored are requested, some at a time, as long as
/// the service answers.
void take_in(Mount& mount, const OperationPtr& op, const Inbox::Lists& lists, const CancelToken& cancel,
             Callback<void> done) {
  const std::vector<Inbox::Missing> missing = mount.inbox().take(lists, cancel);
  if (mount.inbox().is_to_be_saved())
    mount.disk().post([&inbox = mount.inbox()] {
      if (Status saved = inbox.save(); !saved) log_warning("what the inbox has is not kept: " + saved.error().message);
    });
  if (missing.empty() || cancel.cancelled()) {
    op->note(kTaken);
    return done({});
  }
  struct Pending {
    std::atomic<std::size_t> left, answered = 0;
    Callback<void> done;
  };
  auto pending = std::make_shared<Pending>();
  pending->left = missing.size();
  pending->done = std::move(done);
  for (const Inbox::Missing& record : missing) {
    auto came = [&mount, gate = mount.gate(), op, lists, cancel, pending,
                 record](const Result<content::RecordTextPtr>& text) {
      auto ticket = gate->enter();
      const bool is_gone = !text && text.error().code == ErrorCode::not_found;
      if (ticket && is_gone) mount.inbox().is_gone(record);
      if (text || is_gone) ++pending->answered;
      if (pending->left.fetch_sub(1) != 1) return;
      if (!ticket || pending->answered == 0) {
        op->note(kTaken);
        return pending->done({});
      }
      off_thread(mount, mount.reading(), [&mount, op, lists](const CancelToken& token, Callback<void> then) {
        take_in(mount, op, lists, token, std::move(then));
      })(cancel, std::move(pending->done));
    };
    mount.site().record_text(record.collection, record.id, cancel, came);
  }
}

}  // namespace

Attempt<void> inbox_here(Mount& mount, const OperationPtr& op, InboxAge age) {
  if (mount.inbox().me().empty()) return {};
  const auto list = [&](const char* collection) {
    return age == InboxAge::now ? list_here(mount, op, collection) : fresh_list(mount, op, collection);
  };
  // Messages first: then the threads that they are in are listed.
  Inbox::Lists lists;
  PLAYFS_ATTEMPT(lists.messages, list("messages"));
  PLAYFS_ATTEMPT(lists.threads, list("threads"));
  PLAYFS_ATTEMPT(lists.mail, list("domain_mail"));
  // Older ones change, too: a page of them at a time is read again.
  if (!op->noted(kGoesOn))
    for (const char* collection : {"messages", "domain_mail"}) mount.site().names_were_shown(collection);
  if (op->noted(kTaken) || mount.inbox().has_taken(lists)) return {};
  // One thread, as take() requires.
  return missing(
      off_thread(mount, mount.reading(), [&mount, op, lists](const CancelToken& cancel, Callback<void> done) {
        take_in(mount, op, lists, cancel, std::move(done));
      }));
}

Attempt<void> marks_here(Mount& mount, const OperationPtr& op) {
  const char* fact = "inbox/marks";
  if (op->noted(fact)) return {};
  return missing(on_disk(mount, [&marks = mount.inbox_marks(), op, fact] {
    op->note(fact);
    return marks.refresh();
  }));
}

}  // namespace playfs::vfs
