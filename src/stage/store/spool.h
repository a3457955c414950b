// The bytes of staged files: plain files `spool/<number>`, 0600, accessed through a bounded pool of descriptors.
//
// Thread-safe. A descriptor stays open while a caller holds it, however many others the pool closes. A file that
// nothing keeps (no row, no pending layer) is given up with its last SpoolFilePtr and removed later: not before the
// disk knows that no row references it, or a power loss could bring back the row without the bytes.
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

/// One file of the spool. It need not exist on disk: it has no bytes then.
///
/// A sync error is permanent: the kernel reports a failed write once and then takes the page for clean, so a retry
/// would succeed with the bytes nowhere.
class SpoolFile {
 public:
  SpoolFile(std::shared_ptr<Spool> spool, std::uint64_t number, bool keep)
      : keep(keep), spool_(std::move(spool)), number_(number) {}
  ~SpoolFile();
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// File name on disk.
  [[nodiscard]] std::string name() const;

  /// The file outlives this object: something on disk references it.
  std::atomic<bool> keep;
  /// The file exists on disk; an empty file is not created before its first byte. For a file of an earlier run: it
  /// existed when the stage was opened.
  std::atomic<bool> is_made = true;
  /// Recorded minimum size. Guarded by the stage's mutex.
  struct Noted {
    std::uint64_t size = 0;
    std::uint64_t synced = 0;   ///< also after a power loss
    std::uint64_t changes = 0;  ///< not 0: `size` is exact while SpoolFile::changes has this value
  };
  Noted noted;
  /// For a file of an earlier run: the size that it must have. Checked when it is first opened, then 0.
  std::atomic<std::uint64_t> expected = 0;
  /// When last opened it was missing or too short.
  std::atomic<bool> is_lost = false;
  /// Number of changes of its bytes; incremented after each change.
  std::atomic<std::uint64_t> changes = 0;
  /// How many of these changes are safe from a power loss.
  [[nodiscard]] std::uint64_t synced_changes() const { return synced_changes_; }
  [[nodiscard]] bool is_safe() const { return !is_made || (was_synced_ && synced_changes_ >= changes); }
  /// Whether some caller was told that bytes of it are safe from a power loss.
  [[nodiscard]] bool was_synced() const { return was_synced_; }
  /// For a file of an earlier run: what was synced is unknown, and whether checkpoints have it.
  void is_of_earlier_run() {
    changes = 1;
    was_synced_ = true;
    may_be_shared = true;
  }
  /// A checkpoint has the file too, unless the disk says otherwise: see Spool::is_shared().
  std::atomic<bool> may_be_shared = false;
  /// Still being filled, and no row references it: it has a temporary name, so that a crash leaves nothing to account
  /// for. Ends with Spool::complete().
  std::atomic<bool> is_partial = false;

 private:
  friend class Spool;
  void note_synced(std::uint64_t changes);
  std::shared_ptr<Spool> spool_;
  std::uint64_t number_;
  std::atomic<std::uint64_t> synced_changes_ = 0;
  std::atomic<bool> was_synced_ = false;
  Mutex syncing_;  ///< held while the disk syncs, so that concurrent syncs of the file do not miss its error
  std::optional<Error> sync_error_ PLAYFS_GUARDED_BY(syncing_);
};
using SpoolFilePtr = std::shared_ptr<SpoolFile>;
using SharedFd = std::shared_ptr<const UniqueFd>;

class Spool {
 public:
  /// Creates `directory` if missing. The pool keeps at most `descriptors` files open.
  static Result<std::shared_ptr<Spool>> open(const std::string& directory, std::size_t descriptors);

  /// Numbers of the existing files, unordered.
  [[nodiscard]] Result<std::vector<std::uint64_t>> list();
  /// Removes partial files that a crash left. REQUIRES: no partial file is in use.
  void remove_partial() noexcept;

  /// Calls `given_up` with the number of files that wait for removal, each time one is added, under whatever locks the
  /// caller holds. If empty, files given up from now on are left to the next start.
  void on_given_up(std::function<void(std::size_t)> given_up);
  /// Takes the list of files that wait for removal.
  [[nodiscard]] std::vector<std::uint64_t> take_given_up();
  /// Puts the same files back on the list.
  void put_back(const std::vector<std::uint64_t>& numbers);
  /// Files that cannot be removed stay until the stage is opened again.
  void remove(const std::vector<std::uint64_t>& numbers) noexcept;

  /// Free bytes on its disk; 0 if unknown.
  [[nodiscard]] std::uint64_t free_room() const noexcept;

  /// Open for reading and writing; nullptr if the file was never created and `create` is false. `corrupt` if it was
  /// created and is missing, or shorter than an earlier run left it; sets `is_lost` then.
  [[nodiscard]] Result<SharedFd> descriptor(SpoolFile& file, bool create);
  /// Copies the first `size` bytes of `from` to the new file `to`: as a reflink where the disk can, holes kept.
  [[nodiscard]] Status clone(SpoolFile& from, SpoolFile& to, std::uint64_t size);
  /// The same from an open file.
  [[nodiscard]] Status clone(int from, SpoolFile& to, std::uint64_t size);
  /// For a partial file with all its bytes: syncs them and gives the file its name, synced. From now on a row may
  /// reference it in place of bytes that were safe.
  [[nodiscard]] Status complete(SpoolFile& file);
  /// The second half of that, for many files whose bytes were synced.
  [[nodiscard]] Status name(const std::vector<SpoolFilePtr>& files);

  /// Gives the file's bytes a second name in `folder`, its number, and returns their size. From now on is_shared().
  /// `corrupt` if bytes are missing.
  [[nodiscard]] Result<std::uint64_t> share(SpoolFile& file, int folder);
  /// Whether the file has a second name, so that its bytes must not change. The link count on disk says so: it holds
  /// across restarts, and ends with the last checkpoint that has the file.
  [[nodiscard]] bool is_shared(SpoolFile& file);
  /// Whether the spool's file of that number is the one that `folder` has.
  [[nodiscard]] bool has_same(std::uint64_t number, int folder) const;
  /// Makes bytes and name of the file, as of the call, safe from a power loss. A file that is not on disk needs no
  /// sync.
  [[nodiscard]] Status sync(SpoolFile& file);
  /// The same for many files, at the cost of a few. Up to 16 fail independently, more succeed or fail together.
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
  /// Ends that the file is partial. Its name is not synced.
  [[nodiscard]] Status take_name(SpoolFile& file);
  /// Makes the names of all files created so far safe from a power loss.
  [[nodiscard]] Status sync_names();
  /// Syncs the whole file system of the spool.
  [[nodiscard]] Status sync_everything();

  const UniqueFd directory_;
  const std::size_t descriptors_;
  std::atomic<std::uint64_t> names_made_ = 1;  ///< 1: covers what an earlier process left behind
  Mutex syncing_;                              ///< held while the disk syncs the directory, or everything
  std::uint64_t names_synced_ PLAYFS_GUARDED_BY(syncing_) = 0;
  /// From a sync that covered all files: which of them are on disk is unknown from then on.
  std::optional<Error> sync_error_ PLAYFS_GUARDED_BY(syncing_);
  Mutex mutex_;
  std::unordered_map<std::uint64_t, Open> open_ PLAYFS_GUARDED_BY(mutex_);
  std::list<std::uint64_t> recent_ PLAYFS_GUARDED_BY(mutex_);  ///< most recently used first
  std::vector<std::uint64_t> given_up_ PLAYFS_GUARDED_BY(mutex_);
  std::function<void(std::size_t)> tell_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::stage
