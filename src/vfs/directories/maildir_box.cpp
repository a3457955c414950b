#include "vfs/directories/maildir_box.h"

#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>

#include "mail/maildir.h"
#include "vfs/ino.h"
#include "vfs/listings.h"
#include "vfs/mount.h"

namespace playfs::vfs {

MaildirBox::MaildirBox(Mount& mount, NodePtr parent, std::string name, Place place)
    : VirtualDirectory(mount, std::move(parent), std::move(name)), place_(place) {}

Attempt<AttributesReply> MaildirBox::attributes(const OperationPtr& op) {
  // Mail readers check only the time to see whether something came, so checking it counts as looking at the folder.
  if (!is_tmp()) folder().looked();
  PLAYFS_ATTEMPT(AttributesReply reply, VirtualDirectory::attributes(op));
  if (!is_tmp()) reply.timeout = mount().refresh_seconds();
  return reply;
}

std::uint64_t MaildirBox::ino_of(const std::string& name) const {
  const auto letter = mail::parse_maildir_name(name);
  return letter ? ino_by_time(parent()->ino(), letter->unique(), letter->updated) : VirtualDirectory::ino_of(name);
}

Attempt<ListedNames> MaildirBox::names(const OperationPtr& op) {
  if (is_tmp()) return fixed_names({});
  for (const std::string& collection : folder().collections()) mount().listings().given(collection, shared_from_this());
  PLAYFS_ATTEMPT(FolderLettersPtr all, folder().letters(op, op->noted(kGoesOn)));
  const std::uint64_t marks = folder().marks_version();
  {
    MutexLock lock(mutex_);
    if (listed_ == all && marks_ == marks) return names_;
  }
  std::vector<ListedName> names;
  for (const FolderLetterPtr& letter : all->all) {
    const MaildirMark mark = folder().shown(*letter);
    if (mark.place == place_) names.push_back({letter->unique + mark.info, S_IFREG, letter->position});
  }
  std::sort(names.begin(), names.end(),
            [](const ListedName& a, const ListedName& b) { return a.position < b.position; });
  auto listed = std::make_shared<const std::vector<ListedName>>(std::move(names));
  FolderLettersPtr former;  // destroyed after the lock is released
  MutexLock lock(mutex_);
  former = std::exchange(listed_, all);
  marks_ = marks;
  return names_ = listed;
}

Attempt<LookupResult> MaildirBox::child(const OperationPtr& op, const std::string& name) {
  if (is_tmp() || !mail::parse_maildir_name(name)) return nothing(kEndless);
  return folder().file(op, place_, name);
}

Error MaildirBox::refusal() const {
  if (is_tmp())
    return {ErrorCode::not_permitted, "nothing is delivered to maildir/ from here",
            "write with `playfs sendmail`, or to threads/ID/reply and mail/new; save copies in another Maildir"};
  return {ErrorCode::not_permitted, "letters in maildir/ can be moved between new/ and cur/, flagged and removed only",
          "write with `playfs sendmail`, or to threads/ID/reply and mail/new; save copies in another Maildir"};
}

Attempt<void> MaildirBox::unlink(const OperationPtr& op, const std::string& name) {
  return folder().mark(op, place_, name, Place::hidden, {});
}

Attempt<void> MaildirBox::rename(const OperationPtr& op, const std::string& name, const NodePtr& new_parent,
                                 const std::string& new_name, unsigned flags) {
  const auto box = std::dynamic_pointer_cast<MaildirBox>(new_parent);
  const auto from = mail::parse_maildir_name(name), to = mail::parse_maildir_name(new_name);
  const bool is_here = box && box->parent() == parent() && !box->is_tmp() && !is_tmp();
  if ((flags & ~static_cast<unsigned>(RENAME_NOREPLACE)) != 0 || !is_here || !from || !to ||
      from->unique() != to->unique())
    return refused(op);
  return folder().mark(op, place_, name, box->place_, new_name.substr(to->unique().size()));
}

Attempt<void> MaildirBox::sync(const OperationPtr& op) { return folder().sync_marks(op); }

LetterFile::LetterFile(Mount& mount, NodePtr parent, std::string name, MaildirsPtr shared, LetterTexts::Wanted wanted,
                       LetterTexts::Told told)
    : Node(mount, std::move(parent), std::move(name)),
      shared_(std::move(shared)),
      wanted_(std::move(wanted)),
      told_(told) {}

std::uint64_t LetterFile::ino() const { return ino_by_time(parent()->ino(), name(), wanted_.updated); }

Attempt<AttributesReply> LetterFile::attributes(const OperationPtr&) {
  const WallTime updated{wanted_.updated * 1000};
  return AttributesReply{mount().attributes(ino(), S_IFREG | 0444, told_.size, updated), kEndless};
}

Attempt<std::string> LetterFile::read(const OperationPtr& op, std::uint64_t offset, std::size_t size) {
  auto& folder = static_cast<MaildirFolder&>(*parent());
  PLAYFS_ATTEMPT(LetterTexts::TextPtr text, shared_->texts.text(op, wanted_, folder.is_of_thread()));
  if (LetterTexts::told_of(*text) != told_) {
    // The parent has changed. The next lookup finds another file.
    shared_->texts.forget();
    folder.is_outdated(name());
    return fail(ErrorCode::stale, "what the letter refers to has changed", "open it again");
  }
  return offset < text->size() ? text->substr(offset, size) : std::string();
}

Error LetterFile::refusal() const {
  return {ErrorCode::not_permitted, "a letter in maildir/ shows a message or a mail as it is",
          "change a message by writing JSON to threads/ID/messages/ID.json"};
}

}  // namespace playfs::vfs
