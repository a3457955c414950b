#include "vfs/directories/inbox.h"

#include <cstdio>

#include "vfs/attempt_fetches.h"
#include "vfs/control/control_text.h"
#include "vfs/directories/record_names.h"
#include "vfs/listings.h"
#include "vfs/published/inbox_fetches.h"
#include "vfs/published/record_fetches.h"

namespace playfs::vfs {
namespace {

using content::Inbox;

constexpr const char* kInboxLists[] = {"messages", "threads", "domain_mail"};
constexpr const char* kShown =
    "the inbox shows records as they are: answer in threads/ID/reply, change your own in threads/ID/messages/";

/// How far the lines go that a file shows.
struct InboxBasis final : GrowingBasis {
  explicit InboxBasis(std::uint64_t behind) : end(behind) {}
  const std::uint64_t end;
};

Error only_marked() {
  return {ErrorCode::not_permitted, "entries of the inbox are moved between new/ and seen/, under their own names",
          "mv inbox/new/ID.json inbox/seen/   (and back); nothing is removed"};
}

}  // namespace

InboxDirectory::InboxDirectory(Mount& mount, NodePtr parent, std::string name)
    : GrowingDirectory(mount, std::move(parent), std::move(name), {"messages.ndjson"},
                       {std::begin(kInboxLists), std::end(kInboxLists)}) {}

Error InboxDirectory::refusal() const { return only_marked(); }

Attempt<ListedNames> InboxDirectory::names(const OperationPtr&) {
  return fixed_names({{"messages.ndjson", S_IFREG}, {"new", S_IFDIR}, {"seen", S_IFDIR}});
}

Attempt<LookupResult> InboxDirectory::child(const OperationPtr& op, const std::string& name) {
  if (name == "new") return directory<MarkedDirectory>(op, name, false);
  if (name == "seen") return directory<MarkedDirectory>(op, name, true);
  if (grows(name)) return growing(op, name);
  return nothing(kEndless);
}

Attempt<LookupResult> InboxDirectory::growing(const OperationPtr& op, const std::string& name) {
  const bool is_look = !op->noted(kGoesOn);
  if (is_look) looked();
  PLAYFS_ATTEMPT_CHECK(inbox_here(mount(), op, is_look ? InboxAge::now : InboxAge::fresh));
  const Inbox& inbox = mount().inbox();
  const bool is_nobodys = inbox.me().empty();
  if ((is_nobodys || inbox.is_cut()) && !told_.exchange(true)) {
    const Error nobodys{ErrorCode::refused_input, "the inbox is empty, since this mount has no agent",
                        "mount it with -o agent=HANDLE"};
    const Error cut{ErrorCode::refused_input,
                    "has at most the newest " + std::to_string(Inbox::kMost) + " entries, and at least the newest " +
                        std::to_string(Inbox::kMostBytes / 2) + " bytes of lines",
                    "older messages are in threads/"};
    mount().site().events().error(path_below(name), is_nobodys ? nobodys : cut);
  }
  if (const auto file = file_of(name); file && grown(*file)) return grown_file(op, file);
  const std::uint64_t number = next_reading();
  const Inbox::Lines lines = inbox.lines();
  return growing_file(op, name, lines.text, {std::make_shared<const InboxBasis>(lines.end), number});
}

bool InboxDirectory::grown(GrowingFile& file) {
  const GrowingFile::Shown shown = file.shown();
  auto more = mount().inbox().lines_from(std::static_pointer_cast<const InboxBasis>(shown.basis)->end);
  if (!more) return false;
  if (more->text.empty()) return true;
  Status longer = file.append(shown.basis, more->text, {std::make_shared<const InboxBasis>(more->end), shown.reading});
  if (!longer) mount().site().events().error(file.path(), longer.error());
  return longer.has_value();
}

MarkedDirectory::MarkedDirectory(Mount& mount, NodePtr parent, std::string name, bool is_seen)
    : VirtualDirectory(mount, std::move(parent), std::move(name)), is_seen_(is_seen) {}

Error MarkedDirectory::refusal() const { return only_marked(); }

Attempt<ListedNames> MarkedDirectory::names(const OperationPtr& op) {
  for (const char* collection : kInboxLists) mount().listings().given(collection, shared_from_this());
  PLAYFS_ATTEMPT_CHECK(inbox_here(mount(), op, InboxAge::now));
  PLAYFS_ATTEMPT_CHECK(marks_here(mount(), op));
  std::vector<ListedName> names;
  for (const Inbox::Entry& entry : mount().inbox().entries())
    if (names_a_file(entry.id) && mount().inbox_marks().is_seen(entry.id, entry.at) == is_seen_)
      names.push_back({entry.id + ".json", S_IFREG, kFirstPosition + entry.position});
  return std::make_shared<const std::vector<ListedName>>(std::move(names));
}

Attempt<LookupResult> MarkedDirectory::child(const OperationPtr& op, const std::string& name) {
  auto stem = stem_of(name);
  if (!stem) return nothing(kEndless);
  PLAYFS_ATTEMPT_CHECK(inbox_here(mount(), op, InboxAge::fresh));
  const std::optional<Inbox::Entry> entry = mount().inbox().find(*stem);
  if (!entry) return nothing();
  PLAYFS_ATTEMPT_CHECK(marks_here(mount(), op));
  if (mount().inbox_marks().is_seen(entry->id, entry->at) != is_seen_) return nothing();
  // The record as stored from the list, which is fresh.
  PLAYFS_ATTEMPT(RecordPartPtr part, known_part(mount(), op, entry->collection, entry->id, text_of_record));
  return snapshot(op, name, shown_text_of(mount(), entry->collection, entry->id, text_of_record, *part),
                  record_time(part->record), 0, kShown);
}

Attempt<void> MarkedDirectory::rename(const OperationPtr& op, const std::string& name, const NodePtr& new_parent,
                                      const std::string& new_name, unsigned flags) {
  const auto other = std::dynamic_pointer_cast<MarkedDirectory>(new_parent);
  const auto stem = stem_of(name);
  if (!stem || !other || new_name != name || (flags & ~unsigned{RENAME_NOREPLACE}) != 0) return refused(op);
  const std::optional<Inbox::Entry> entry = mount().inbox().find(*stem);
  if (!entry) return fail(ErrorCode::not_found, "no entry of the inbox has this name");
  constexpr const char *kMoved = "inbox/moved", *kGone = "inbox/gone";
  if (other.get() != this && !op->noted(kMoved) && !op->noted(kGone)) {
    return missing(on_disk(mount(), [&mount = mount(), op, entry = *entry, is_seen = other->is_seen_]() -> Status {
      PLAYFS_CHECK(mount.inbox().save_before_mark());
      PLAYFS_TRY(const bool is_ours, mount.inbox_marks().mark(entry.id, entry.at, is_seen));
      op->note(is_ours ? kMoved : kGone);
      return {};
    }));
  }
  for (const Node* directory : {static_cast<const Node*>(this), static_cast<const Node*>(other.get())})
    mount().notifications().node_changed(directory->id(), 0);
  if (op->noted(kGone)) return fail(ErrorCode::not_found, "another reader has moved it", "list the directory again");
  return {};
}

}  // namespace playfs::vfs
