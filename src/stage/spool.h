// The bytes of staged files: plain files `spool/<number>`, 0600, reached through a bounded pool of descriptors.
//
// Thread-safe. A descriptor stays open while somebody holds it, however many others the pool has to close. A file
// that nobody keeps (no row, no pending layer) is given up with the last SpoolFilePtr, and removed some time after: not
// before the disk knows that no row names it, or a power loss could bring the row back without the bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/result.h"

namespace playfs::stage {

class Spool;

/// One file of the spool. It need not exist on disk: then it stands for no bytes at all.
///
/// An error of sync is the file's answer to every later one: the kernel reports a failed write once and then takes the
/// page for clean, so that trying again would succeed with the bytes nowhere.
class SpoolFile {
 public:
  SpoolFile(std::shared_ptr<Spool> spool, std::uint64_t number, bool keep)
      : keep(keep), spool_(std::move(spool)), number_(number) {}
  ~SpoolFile();
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// On disk.
  [[nodiscard]] std::string name() const;

  /// Whether the file outlives this object: something on disk refers to it.
  std::atomic<bool> keep;
  /// Whether it was made on disk: an empty file is not, until its first byte. Of a file of an earlier run, whether it
  /// was there when the stage was opened.
  std::atomic<bool> is_made = true;
  /// What is written down of how long it is at least. Guarded by the stage's mutex.
  struct Noted {
    std::uint64_t size = 0;
    std::uint64_t synced = 0;   ///< also after a power loss
    std::uint64_t changes = 0;  ///< not 0: that is exact as long as there are no more `changes`
  };
  Noted noted;
  /// Of a file of an earlier run: how long it has to be. It is looked at when it is first opened, and is 0 from then
  /// on.
  std::atomic<std::uint64_t> expected = 0;
  /// When it was last to be opened it was gone or shorter than it had to be.
  std::atomic<bool> is_lost = false;
  /// How often its bytes were changed; who changes them counts when it has done so.
  std::atomic<std::uint64_t> changes = 0;
  /// Of these changes, how many are safe from a power loss.
  [[nodiscard]] std::uint64_t synced_changes() const { return synced_changes_; }
  [[nodiscard]] bool is_safe() const { return !is_made || (was_synced_ && synced_changes_ >= changes); }
  /// Whether a power loss may leave bytes in it that somebody was told are safe.
  [[nodiscard]] bool was_synced() const { return was_synced_; }
  /// Of a file that was there before: nobody knows what was synced.
  void is_of_earlier_run() {
    changes = 1;
    was_synced_ = true;
  }
  /// Its bytes are being brought, and no row names it: on disk it is called so that a crash leaves nothing that anybody
  /// would have to account for. Ends with Spool::complete().
  std::atomic<bool> is_partial = false;

 private:
  friend class Spool;
  void note_synced(std::uint64_t changes);
  std::shared_ptr<Spool> spool_;
  std::uint64_t number_;
  std::atomic<std::uint64_t> synced_changes_ = 0;
  std::atomic<bool> was_synced_ = false;
  Mutex syncing_;  ///< held while the disk syncs: who syncs the same file meanwhile must not miss its error
  std::optional<Error> sync_error_ PLAYFS_GUARDED_BY(syncing_);
};
using SpoolFilePtr = std::shared_ptr<SpoolFile>;
using SharedFd = std::shared_ptr<const UniqueFd>;

class Spool {
 public:
  /// Creates `directory` where it is missing. At most `descriptors` files are kept open that nobody uses.
  static Result<std::shared_ptr<Spool>> open(const std::string& directory, std::size_t descriptors);

  /// The numbers of the files that are there, in no order.
  [[nodiscard]] Result<std::vector<std::uint64_t>> list();
  /// Removes the partial files that a crash left. REQUIRES: there are no others.
  void remove_partial() noexcept;

  /// Calls `given_up` with how many files wait to be removed, each time there is one more, under whatever locks the
  /// caller holds. Empty: files that are given up from now on are left to the next start.
  void on_given_up(std::function<void(std::size_t)> given_up);
  /// Takes the list of the files that wait to be removed.
  [[nodiscard]] std::vector<std::uint64_t> take_given_up();
  /// The same files again, after all: to be removed later.
  void put_back(const std::vector<std::uint64_t>& numbers);
  /// What cannot be removed now stays until the stage is opened again.
  void remove(const std::vector<std::uint64_t>& numbers) noexcept;

  /// Bytes that are free on its disk; 0 where that cannot be told.
  [[nodiscard]] std::uint64_t free_room() const noexcept;

  /// Open for reading and writing; nullptr where the file was never made and `create` does not ask for it. `corrupt`
  /// where it was made and is gone, or shorter than an earlier run left it: it `is_lost` then.
  [[nodiscard]] Result<SharedFd> descriptor(SpoolFile& file, bool create);
  /// The first `size` bytes of `from` in a new file `to`: shared with it where the disk can, holes kept.
  [[nodiscard]] Status clone(SpoolFile& from, SpoolFile& to, std::uint64_t size);
  /// Of a partial file that holds all its bytes: syncs them and gives it its name, synced. A row may name it from now
  /// on, in place of bytes that were safe.
  [[nodiscard]] Status complete(SpoolFile& file);
  /// Makes the bytes and the name of the file safe from a power loss, as they were when it was called. A file that is
  /// not on disk is none to be synced.
  [[nodiscard]] Status sync(SpoolFile& file);
  /// The same of many, at the price of a few. Where some fail the others are synced all the same.
  [[nodiscard]] Status sync(const std::vector<SpoolFilePtr>& files);

 private:
  friend class SpoolFile;
  struct Open {
    SharedFd fd;
    std::list<std::uint64_t>::iterator position;  ///< in recent_
  };

  Spool(UniqueFd directory, std::size_t descriptors) : directory_(std::move(directory)), descriptors_(descriptors) {}
  [[nodiscard]] Result<std::vector<std::string>> names();
  void give_up(std::uint64_t number) noexcept;
  void remember(std::uint64_t number, SharedFd fd) PLAYFS_REQUIRES(mutex_);
  [[nodiscard]] Status sync_bytes(SpoolFile& file);
  /// Makes the names of the files that were created so far safe from a power loss.
  [[nodiscard]] Status sync_names();
  /// Everything in the file system of the spool.
  [[nodiscard]] Status sync_everything();

  const UniqueFd directory_;
  const std::size_t descriptors_;
  std::atomic<std::uint64_t> names_made_ = 1;  ///< also what an earlier process left behind
  Mutex syncing_;                              ///< held while the disk syncs the directory, or everything
  std::uint64_t names_synced_ PLAYFS_GUARDED_BY(syncing_) = 0;
  /// Of a sync that covered all files: nobody can tell any more which of them are on disk.
  std::optional<Error> sync_error_ PLAYFS_GUARDED_BY(syncing_);
  Mutex mutex_;
  std::unordered_map<std::uint64_t, Open> open_ PLAYFS_GUARDED_BY(mutex_);
  std::list<std::uint64_t> recent_ PLAYFS_GUARDED_BY(mutex_);  ///< most recently used first
  std::vector<std::uint64_t> given_up_ PLAYFS_GUARDED_BY(mutex_);
  std::function<void(std::size_t)> tell_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::stage
