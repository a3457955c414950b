// A clone: a project's work tree in a plain directory, without a mount.
//
// `.playfs/` in it holds what a mount keeps elsewhere: the stage, the journal of publications; and the index. A command
// locks the clone, takes in what was changed in the directory, does its work on the stage with the engine of a mount
// (vfs::LoneWorkTree), and brings the result out. If it is killed anywhere, the next command goes on from there. See
// README.md. Blocking; for one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/held_lock.h"
#include "base/result.h"
#include "clone/bring_out.h"
#include "clone/index.h"
#include "clone/plain_directory.h"
#include "clone/scan.h"
#include "content/site.h"
#include "vfs/lone_work_tree.h"

namespace playfs::clone {

struct DirectoryState {
  bool is_interrupted = false;  ///< a command was interrupted before the directory had all of the stage
  Index::LeftOut left_out;
  std::vector<Unread> unread;
  std::vector<std::string> lost_and_found;
};

/// One command at a time works in a clone.
class Lock {
 public:
  /// `who` is shown to those who wait for this one; `waits` is called with the same of the holder, before waiting.
  static Result<Lock> take(const std::string& directory, const std::string& who,
                           const std::function<void(const std::string&)>& waits);

 private:
  explicit Lock(HeldLock held) : held_(std::move(held)) {}
  HeldLock held_;
};

class Clone {
 public:
  /// What is found in a clone before its stage is open.
  struct Seen {
    PlainDirectory directory;
    Index index;
    Look look;
  };
  /// `directory` is the clone's root, with its state folder; locked. Takes a while, as opening the tree does; neither
  /// needs the other.
  static Result<Seen> look(const std::string& directory);
  /// `tree`, open, with its stage there, and `site` must outlive it.
  static std::unique_ptr<Clone> open(Seen seen, content::Site& site, vfs::LoneWorkTree& tree);

  /// Takes into the stage what was changed in the directory.
  Status take_in();
  /// Call before anything else that may change the stage's content: from then on, the directory may have older
  /// versions.
  Status expect_changes();
  /// Brings out what the stage has, unless the directory has it already.
  Result<BroughtOut> bring_out();

  /// Called with the size of each file that is fetched from now on.
  void on_fetched(std::function<void(std::uint64_t)> act) { fetched_ = std::move(act); }

  /// The state of the directory, apart from what is staged.
  [[nodiscard]] Result<DirectoryState> state();
  /// Paths of what was moved to `lost+found` since the last call.
  [[nodiscard]] std::vector<std::string> newly_kept() { return directory_.newly_kept(); }

 private:
  Clone(Seen seen, content::Site& site, vfs::LoneWorkTree& tree);
  [[nodiscard]] Result<content::Blob> fetch(const FileRef& file);
  [[nodiscard]] Result<BroughtOut> bring_out_once();

  PlainDirectory directory_;
  Index index_;
  std::optional<Look> look_;    ///< for the next take-in; nullopt: it has to look itself
  std::vector<Unread> unread_;  ///< by the last take-in
  content::Site& site_;
  vfs::LoneWorkTree& tree_;
  std::function<void(std::uint64_t)> fetched_ = [](std::uint64_t) {};
};

}  // namespace playfs::clone
