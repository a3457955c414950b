// The texts of letters in `maildir/`, and their sizes.
//
// A text depends on the record, its thread's title and kind, and the ancestors' ids. All of these come with lists, so
// rendering is local work that takes a fraction of a millisecond; records evicted from the cache are requested again.
// Sizes are cached, so that looking up a name that the kernel dropped does not render the letter again. Thread-safe;
// bounded memory.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "vfs/attempt.h"
#include "vfs/control/letters.h"

namespace playfs::vfs {

class Mount;

class LetterTexts {
 public:
  explicit LetterTexts(Mount& mount) : mount_(mount) {}

  /// One version of a letter.
  struct Wanted {
    std::string id;
    std::int64_t updated = 0;  ///< in microseconds, as in its name
    LetterContext context;
    bool operator==(const Wanted& other) const {
      return id == other.id && updated == other.updated && context.subject == other.context.subject &&
             context.kind == other.context.kind;
    }
  };
  /// What the kernel was told about a name.
  struct Told {
    std::uint64_t size = 0, digest = 0;
    bool operator==(const Told&) const = default;
  };
  using TextPtr = std::shared_ptr<const std::string>;
  /// Whether the message is one of the thread, both by id.
  using IsOfThread = std::function<bool(const std::string& message, const std::string& thread)>;

  /// The current text; not_found if the record has changed since that version.
  [[nodiscard]] Attempt<TextPtr> text(const OperationPtr& op, const Wanted& wanted, const IsOfThread& is_of_thread)
      PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] Attempt<Told> told(const OperationPtr& op, const Wanted& wanted, const IsOfThread& is_of_thread)
      PLAYFS_EXCLUDES(mutex_);
  static Told told_of(const std::string& text);
  /// Call when messages have changed: their parents may have too, and with them the letters that answer them.
  void forget() PLAYFS_EXCLUDES(mutex_);

 private:
  struct Ancestor {
    WallTime created_at;
    std::string parent;
  };
  /// The message of that id if it is known locally. Anybody can name any id as a parent, so none is requested.
  [[nodiscard]] std::optional<Ancestor> ancestor(const std::string& id) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] mail::Letter letter_of(const Record& record, const LetterContext& context,
                                       const IsOfThread& is_of_thread) PLAYFS_EXCLUDES(mutex_);
  void keep(std::uint64_t key, const TextPtr& text) PLAYFS_EXCLUDES(mutex_);

  Mount& mount_;
  Mutex mutex_;
  std::unordered_map<std::string, Ancestor> ancestors_ PLAYFS_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Told> told_ PLAYFS_GUARDED_BY(mutex_);  ///< by the version's key
  /// The latest texts, for the read that follows a lookup.
  std::deque<std::pair<std::uint64_t, TextPtr>> recent_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
