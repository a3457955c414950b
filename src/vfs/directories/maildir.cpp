#include "vfs/directories/maildir.h"

#include <sys/stat.h>

#include <algorithm>

#include "mail/address.h"
#include "mail/maildir.h"
#include "model/kinds.h"
#include "vfs/attempt_driver.h"
#include "vfs/attempt_fetches.h"
#include "vfs/directories/maildir_box.h"
#include "vfs/mount.h"
#include "vfs/published/record_fetches.h"

namespace playfs::vfs {
namespace {

/// Folder for the marks, beside the work trees. It cannot clash with a project's, whose names are percent-encoded.
constexpr const char* kMarks = "/=maildir";
/// After this time, a lookup that was answered from an earlier list has reached the kernel.
constexpr std::chrono::seconds kCrossing{2};
/// Marks made within this time are synced together.
constexpr std::chrono::seconds kBetweenSyncs{1};
constexpr const char* kMarked = "marked";

std::vector<std::string> collections_of(const std::string& folder) {
  if (folder == kMail) return {"domain_mail"};
  if (folder == kInbox) return {"messages", "threads", "domain_mail"};
  return {"messages", "threads"};
}

std::string without_seen(std::string info) {
  std::erase_if(info, [](char flag) { return flag == 'S' || flag == 'T'; });
  return info;
}

}  // namespace

std::string Maildirs::domain_of(Mount& mount) { return mail::domain_of(mount.options().mount_source); }

MaildirsDirectory::MaildirsDirectory(Mount& mount, NodePtr parent, std::string name)
    : VirtualDirectory(mount, std::move(parent), std::move(name)),
      shared_(std::make_shared<Maildirs>(mount, mount.options().state_directory + kMarks,
                                         mail::maildir_id(mount.options().agent))) {}

Attempt<ListedNames> MaildirsDirectory::names(const OperationPtr&) {
  std::vector<ListedName> names = {{kInbox, S_IFDIR, kFirstPosition}, {kMail, S_IFDIR, kFirstPosition + 1}};
  for (const std::string_view kind : kThreadKinds)
    names.push_back({std::string(kind), S_IFDIR, kFirstPosition + names.size()});
  return std::make_shared<const std::vector<ListedName>>(std::move(names));
}

Attempt<LookupResult> MaildirsDirectory::child(const OperationPtr& op, const std::string& name) {
  if (name != kInbox && name != kMail && !is_thread_kind(name)) return nothing(kEndless);
  return directory<MaildirFolder>(op, name, shared_);
}

void MaildirsDirectory::tell_marks() {
  const MaildirMarks::Changes changes = shared_->marks.take_changes();
  if (changes.empty()) return;
  for (const char* name : {kInbox, kMail})
    if (auto folder = children().living<MaildirFolder>(name)) folder->marked(changes);
  for (const std::string_view kind : kThreadKinds)
    if (auto folder = children().living<MaildirFolder>(std::string(kind))) folder->marked(changes);
}

MaildirFolder::MaildirFolder(Mount& mount, NodePtr parent, std::string name, MaildirsPtr shared)
    : VirtualDirectory(mount, std::move(parent), std::move(name)),
      shared_(std::move(shared)),
      followed_(mount, collections_of(this->name()), {}, [this] { read_marks(); }),
      index_(this->name(), shared_->domain, threads_of_messages_),
      changed_(mount.started()) {}

MaildirsDirectory& MaildirFolder::above() const { return static_cast<MaildirsDirectory&>(*parent()); }

Attempt<ListedNames> MaildirFolder::names(const OperationPtr&) {
  return fixed_names({{"cur", S_IFDIR}, {"new", S_IFDIR}, {"tmp", S_IFDIR}});
}

Attempt<LookupResult> MaildirFolder::child(const OperationPtr& op, const std::string& name) {
  if (name == "cur") return directory<MaildirBox>(op, name, Place::current);
  if (name == "new") return directory<MaildirBox>(op, name, Place::fresh);
  if (name == "tmp") return directory<MaildirBox>(op, name, Place::hidden);
  return nothing(kEndless);
}

MaildirMark MaildirFolder::shown(std::optional<MaildirMark> mark, const FolderLetter& letter) {
  MaildirMark shown = std::move(mark).value_or(MaildirMark{});
  if (shown.updated != letter.updated) shown.info = without_seen(std::move(shown.info));
  return shown;
}

MaildirFolder::Name MaildirFolder::name_of(const FolderLetter& letter) const {
  const MaildirMark mark = shown(letter);
  return {mark.place, letter.unique + mark.info};
}

Attempt<MaildirFolder::Found> MaildirFolder::find(const OperationPtr& op, Place place, const std::string& name) {
  Found found;
  PLAYFS_ATTEMPT(const FolderLettersPtr all, letters(op, true));
  const std::string unique = name.substr(0, name.find(':'));
  FolderLetterPtr letter = all->find(unique);
  if (!letter) return found;
  found.mark = shared_->marks.of(letter->mark);
  const MaildirMark mark = shown(found.mark, *letter);
  if (mark.place == place && unique + mark.info == name) found.letter = std::move(letter);
  return found;
}

Attempt<LetterTexts::Wanted> MaildirFolder::wanted(const OperationPtr& op, const Found& found) {
  LetterContext context{found.letter->thread ? "messages" : "domain_mail", shared_->domain, {}, {}};
  if (const auto& thread = found.letter->thread) {
    context.kind = thread->kind;
    context.subject = thread->title;
    if (context.subject.empty()) {  // or too long for a list
      PLAYFS_ATTEMPT(RecordPartPtr part, known_part(mount(), op, "threads", thread->id, letter_of_record));
      context.subject = subject_of(part->record);
    }
  }
  return LetterTexts::Wanted{found.letter->id, found.letter->updated, std::move(context)};
}

Attempt<LookupResult> MaildirFolder::file(const OperationPtr& op, Place place, const std::string& name) {
  PLAYFS_ATTEMPT(Found letter, find(op, place, name));
  if (!letter.letter) return nothing();
  PLAYFS_ATTEMPT(LetterTexts::Wanted version, wanted(op, letter));
  auto told = shared_->texts.told(op, version, is_of_thread());
  // The record has changed, but the list does not show that yet.
  if (!told && !told.error().fetch && told.error().error.code == ErrorCode::not_found) return nothing();
  if (!told) return tl::unexpected<NoValue>(std::move(told).error());
  const std::string& unique = letter.letter->unique;
  auto node = letters_.get<LetterFile>(
      unique, [&](const LetterFile& each) { return each.shows(version, *told); },
      [&] { return std::make_shared<LetterFile>(mount(), shared_from_this(), unique, shared_, version, *told); });
  return found(op, node, kEndless);
}

Attempt<void> MaildirFolder::mark(const OperationPtr& op, Place place, const std::string& name, Place to,
                                  const std::string& info) {
  if (op->noted(kMarked)) {
    {
      MutexLock lock(mutex_);
      changed_ = mount().clock().wall();
    }
    above().tell_marks();
    sync_soon();
    return {};
  }
  PLAYFS_ATTEMPT(Found letter, find(op, place, name));
  if (!letter.letter) return fail(ErrorCode::not_found, "there is no such letter here", "list the directory again");
  MaildirMark mark{letter.letter->updated, to, info};
  return missing(on_disk(
      mount(),
      [op, shared = shared_, key = letter.letter->mark, from = letter.mark, mark = std::move(mark)]() -> Status {
        PLAYFS_CHECK(shared->marks.mark(key, from, mark));
        op->note(kMarked);
        return {};
      }));
}

void MaildirFolder::sync_soon() {
  if (shared_->is_sync_due.exchange(true)) return;
  mount().later(kBetweenSyncs, [shared = shared_, &disk = mount().disk(), &events = mount().site().events()] {
    disk.post([shared, &events] {
      shared->is_sync_due = false;
      if (Status synced = shared->marks.sync(); !synced) events.error("maildir", synced.error());
    });
  });
}

Attempt<void> MaildirFolder::sync_marks(const OperationPtr& op) {
  if (op->noted("synced")) return {};
  return missing(on_disk(mount(), [op, shared = shared_]() -> Status {
    PLAYFS_CHECK(shared->marks.sync());
    op->note("synced");
    return {};
  }));
}

void MaildirFolder::invalidate(const std::vector<Name>& names) {
  const auto fresh = children().living<MaildirBox>("new"), current = children().living<MaildirBox>("cur");
  for (const Name& name : names) {
    const auto& box = name.place == Place::fresh ? fresh : current;
    if (box && name.place != Place::hidden) mount().notifications().entry_changed(box->id(), name.text);
  }
}

void MaildirFolder::tell(const std::vector<Name>& outdated) {
  {
    MutexLock lock(mutex_);
    changed_ = mount().clock().wall();
  }
  for (const char* name : {"new", "cur"})
    if (auto box = children().living<MaildirBox>(name)) mount().notifications().node_changed(box->id(), 0);
  if (outdated.empty()) return;
  invalidate(outdated);
  mount().later(kCrossing, [weak = weak_from_this(), outdated] {
    if (auto self = std::static_pointer_cast<MaildirFolder>(weak.lock())) self->invalidate(outdated);
  });
}

void MaildirFolder::is_outdated(const std::string& unique) {
  FolderLettersPtr all;
  {
    MutexLock lock(mutex_);
    all = index_.letters();
  }
  if (const FolderLetterPtr letter = all->find(unique)) tell({name_of(*letter)});
}

void MaildirFolder::marked(const MaildirMarks::Changes& changes) {
  FolderLettersPtr all;
  {
    MutexLock lock(mutex_);
    all = index_.letters();
  }
  std::vector<Name> former;
  for (const FolderLetterPtr& letter : all->all) {
    auto change = changes.find(letter->mark);
    if (change == changes.end()) continue;
    const MaildirMark mark = shown(change->second, *letter);
    former.push_back({mark.place, letter->unique + mark.info});
  }
  if (!former.empty()) tell(former);
}

WallTime MaildirFolder::changed() const {
  MutexLock lock(mutex_);
  return changed_;
}

void MaildirFolder::read_marks() {
  mount().disk().post([&mount = mount(), gate = mount().gate(), shared = shared_, weak = weak_from_this()] {
    const Status read = shared->marks.catch_up();
    auto ticket = gate->enter();
    if (!ticket) return;
    if (!read) mount.site().events().error("maildir", read.error());
    // The last reference to a node is not dropped on this thread.
    mount.soon([weak] {
      if (auto self = std::static_pointer_cast<MaildirFolder>(weak.lock())) self->above().tell_marks();
    });
  });
}

void MaildirFolder::listed_anew() {
  auto look = [this](bool) {
    auto folder = std::static_pointer_cast<MaildirFolder>(shared_from_this());
    auto op = std::make_shared<Operation>(Caller());
    op->note(kGoesOn);
    drive<FolderLettersPtr>(
        mount(), Counted::list, op, [folder](const OperationPtr& by) { return folder->letters(by, true); },
        [folder] { return folder->path(); }, Reply<FolderLettersPtr>([folder](const Result<FolderLettersPtr>&) {}));
  };
  followed_.listed_anew(shared_from_this(), look);
}

}  // namespace playfs::vfs
