// `maildir/`: mails and the messages of threads as Maildirs for mail readers: one for each kind, and one for the inbox
// of the mount's agent.
//
// A name stands for one version of a letter, so the kernel keeps names and contents indefinitely; names that are no
// longer listed are invalidated. In which folder a letter is, its flags, and whether it is shown at all are marks of
// this machine (maildir_marks.h). A changed letter is unread again: it stays where it was, and loses its flags S and T.
// Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vfs/control/letter_texts.h"
#include "vfs/control/maildir_marks.h"
#include "vfs/directories/followed_lists.h"
#include "vfs/directories/maildir_index.h"
#include "vfs/directories/virtual_directory.h"
#include "vfs/published/list_fetches.h"

namespace playfs::vfs {

/// What the folders share.
struct Maildirs {
  Maildirs(Mount& mount, std::string directory, const std::string& agent)
      : domain(domain_of(mount)), texts(mount), marks(std::move(directory), agent) {}
  const std::string domain;
  LetterTexts texts;
  MaildirMarks marks;
  std::atomic<bool> is_sync_due = false;

 private:
  static std::string domain_of(Mount& mount);
};
using MaildirsPtr = std::shared_ptr<Maildirs>;

class MaildirsDirectory final : public VirtualDirectory {
 public:
  MaildirsDirectory(Mount& mount, NodePtr parent, std::string name);

  /// Passes other mounts' marks on to the folders.
  void tell_marks();

 protected:
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;

 private:
  const MaildirsPtr shared_;
};

/// One Maildir.
class MaildirFolder final : public VirtualDirectory {
 public:
  using Place = MaildirMark::Place;
  MaildirFolder(Mount& mount, NodePtr parent, std::string name, MaildirsPtr shared);

  /// `any_age`: accept lists of any age.
  Attempt<FolderLettersPtr> letters(const OperationPtr& op, bool any_age) PLAYFS_EXCLUDES(mutex_);
  /// The place and flags of a letter with this mark.
  [[nodiscard]] static MaildirMark shown(std::optional<MaildirMark> mark, const FolderLetter& letter);
  [[nodiscard]] MaildirMark shown(const FolderLetter& letter) const {
    return shown(shared_->marks.of(letter.mark), letter);
  }
  /// What a name in `place` stands for, if anything.
  Attempt<LookupResult> file(const OperationPtr& op, Place place, const std::string& name);
  /// Moves, flags or removes a letter.
  Attempt<void> mark(const OperationPtr& op, Place place, const std::string& name, Place to, const std::string& info);
  Attempt<void> sync_marks(const OperationPtr& op);

  /// Call when the letter's name stands for another file.
  void is_outdated(const std::string& unique);
  void listed_anew() override;
  /// Call when another mount has changed marks.
  void marked(const MaildirMarks::Changes& changes) PLAYFS_EXCLUDES(mutex_);
  /// Call when a program looks at the folder: keeps the lists current for a while.
  void looked() { followed_.looked(shared_from_this()); }
  [[nodiscard]] WallTime changed() const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::uint64_t marks_version() const { return shared_->marks.version(); }
  /// Judges by the lists as they are when it is called.
  [[nodiscard]] LetterTexts::IsOfThread is_of_thread() const;
  /// The collections that the folder is derived from.
  [[nodiscard]] const std::vector<std::string>& collections() const { return followed_.collections(); }

 protected:
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;

 private:
  /// A name that the kernel may have.
  struct Name {
    Place place;
    std::string text;
  };
  /// A letter and its mark.
  struct Found {
    FolderLetterPtr letter;
    std::optional<MaildirMark> mark;
  };
  /// The letter that a name in `place` stands for; nullptr: none.
  Attempt<Found> find(const OperationPtr& op, Place place, const std::string& name);
  Attempt<LetterTexts::Wanted> wanted(const OperationPtr& op, const Found& found);
  [[nodiscard]] Name name_of(const FolderLetter& letter) const;
  FolderLettersPtr settle(const FolderIndex::Lists& lists) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool is_inbox() const;
  void tell_left_out();
  void invalidate(const std::vector<Name>& names);
  /// Invalidates the names that are listed differently.
  void tell(const std::vector<Name>& outdated) PLAYFS_EXCLUDES(mutex_);
  void sync_soon();
  void read_marks();
  [[nodiscard]] MaildirsDirectory& above() const;

  const MaildirsPtr shared_;
  Children letters_;
  const std::shared_ptr<ThreadsOfMessages> threads_of_messages_ = std::make_shared<ThreadsOfMessages>();
  std::atomic<bool> told_ = false;  ///< that older letters are left out
  FollowedLists followed_;
  mutable Mutex mutex_;
  FolderIndex index_ PLAYFS_GUARDED_BY(mutex_);
  bool is_known_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::uint64_t inbox_version_ PLAYFS_GUARDED_BY(mutex_) = 0;
  WallTime changed_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
