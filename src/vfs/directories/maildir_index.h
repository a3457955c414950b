// Which letters a folder of `maildir/` has, according to the lists of the service. Only the differences from the
// previous lists are examined, so a new message makes one letter, however many there are.
//
// A FolderIndex is not thread-safe; what it hands out is immutable, or has a lock of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "content/inbox.h"
#include "content/types.h"

namespace playfs::vfs {

/// Folders beside those of the kinds of threads.
inline constexpr const char* kMail = "mail";
inline constexpr const char* kInbox = "inbox";

/// A letter, as lists have it.
struct FolderLetter {
  struct Thread {
    std::string id, title, kind;
  };
  std::string unique;                    ///< its name, but for the flags
  std::string mark;                      ///< by which it is marked
  std::string id;                        ///< of its record
  std::int64_t updated = 0;              ///< in microseconds, as in its name
  std::uint64_t position = 0;            ///< in listings; a letter keeps it as others come
  std::shared_ptr<const Thread> thread;  ///< nullptr: it is a mail
};
using FolderLetterPtr = std::shared_ptr<const FolderLetter>;

/// The letters of a folder at one time. Immutable.
struct FolderLetters {
  std::vector<FolderLetterPtr> all;  ///< by `unique`
  /// nullptr: there is none.
  [[nodiscard]] FolderLetterPtr find(std::string_view unique) const;
};
using FolderLettersPtr = std::shared_ptr<const FolderLetters>;

/// The threads of the messages that a folder has, and of those that they may answer. Thread-safe.
class ThreadsOfMessages {
 public:
  [[nodiscard]] bool is_of(const std::string& message, const std::string& thread) const PLAYFS_EXCLUDES(mutex_);
  void set(const std::string& message, const std::string& thread) PLAYFS_EXCLUDES(mutex_);
  void erase(const std::string& message) PLAYFS_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::unordered_map<std::string, std::string> threads_ PLAYFS_GUARDED_BY(mutex_);
};

class FolderIndex {
 public:
  /// The most letters in a folder; the oldest are left out.
  static constexpr std::size_t kMost = 50'000;
  /// How many more there may be before they are dropped together.
  static constexpr std::size_t kSpare = 1'000;

  /// `folder`: kMail, kInbox or a kind of threads. `domain`: of the site. Keeps `threads` up to date, too.
  FolderIndex(std::string folder, std::string domain, std::shared_ptr<ThreadsOfMessages> threads);

  /// The lists that the index is made of; nullptr for one that it does not use.
  struct Lists {
    content::ListPtr messages, threads, mail;
    bool operator==(const Lists&) const = default;
  };
  struct Change {
    std::vector<FolderLetterPtr> gone;  ///< their names mean something else now, or nothing
    std::size_t made = 0;               ///< letters that are new, or other ones
    bool is_left_out = false;           ///< there are too many letters
  };
  /// Brings the index up to date. `entries`: of the inbox, for its folder.
  Change bring_up(const Lists& lists, const std::vector<content::Inbox::Entry>& entries);
  [[nodiscard]] const Lists& lists() const { return lists_; }
  [[nodiscard]] const FolderLettersPtr& letters() const { return letters_; }

 private:
  using Listed = content::Listed;
  /// What one call of bring_up() does.
  struct Work {
    std::unordered_set<std::string_view> changed_threads;
    std::vector<const Listed*> fresh;  ///< records that are new or changed, oldest first
    std::vector<FolderLetterPtr> added;
    std::unordered_map<std::string, FolderLetterPtr> dropped;  ///< by the record's id
  };
  [[nodiscard]] bool is_inbox() const { return folder_ == kInbox; }
  [[nodiscard]] bool is_of_threads() const { return folder_ != kMail; }
  void take_threads(const content::ListPtr& now, Work& work);
  void take_records(const content::ListPtr& before, const content::ListPtr& now, bool are_messages, Work& work);
  void take_entries(const Lists& lists, const std::vector<content::Inbox::Entry>& entries, Work& work);
  void add_fresh(Work& work);
  void add_of_changed_threads(const content::ListPtr& messages, Work& work);
  /// A record has a letter, unless its thread is of another kind or not known.
  void add(const Listed& of, bool is_message, std::uint64_t position, Work& work);
  /// The same for a letter outside the inbox: it keeps its position.
  void add_in_place(const Listed& of, Work& work);
  void drop(std::string_view id, Work& work);
  void drop_oldest(Work& work);
  void settle(Work& work);

  const std::string folder_, domain_;
  Lists lists_;
  std::unordered_map<std::string, std::shared_ptr<const FolderLetter::Thread>> threads_;  ///< those of this folder
  std::unordered_map<std::string, FolderLetterPtr> by_id_;                                ///< by the record's id
  const std::shared_ptr<ThreadsOfMessages> threads_of_messages_;
  FolderLettersPtr letters_;
  std::uint64_t next_;  ///< position
};

}  // namespace playfs::vfs
