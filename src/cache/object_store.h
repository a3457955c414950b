// Content on disk, addressed by our own SHA-256 of the bytes: hashed once when stored, and checked by XXH3 block
// checksums on every read.
//
// Any number of processes may share the directory, and it may be deleted at any time. An object appears whole or not at
// all (written aside, then renamed). It is not synced: checksums detect a torn object, which is fetched again. Above
// `budget`, or on a full disk, the least recently used objects are evicted. Thread-safe. Objects stay readable after
// their file is removed and after the store is destroyed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/executor.h"
#include "base/result.h"
#include "model/content_hash.h"

namespace playfs::cache {

/// An open object. Immutable and thread-safe. Holds a file descriptor while it lives: keep it for a read, not for the
/// life of a file handle.
class Object {
 public:
  virtual ~Object() = default;
  [[nodiscard]] virtual const ContentHash& hash() const = 0;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Up to `size` bytes at `offset`, fewer only at the end. Checks every block read. A damaged one fails with `corrupt`
  /// and sets the object aside, so that the next find() misses: fetch it again.
  [[nodiscard]] virtual Result<std::string> read(std::uint64_t offset, std::size_t size) const = 0;
  /// Copies everything to the empty file `fd`, checked as in read(), and sharing disk space if the file system can.
  /// After an error `fd` may have any content.
  [[nodiscard]] virtual Status copy_to(int fd) const;
};
using ObjectPtr = std::shared_ptr<const Object>;

/// The precision of an object's time of last use. A finer one would cost a write per read.
inline constexpr std::chrono::minutes kUsedGranularity{10};

/// Evict after writing one part in this many of the budget.
inline constexpr std::uint64_t kShareBetweenTrims = 16;

struct ObjectStoreOptions {
  std::size_t open_files = 256;       ///< descriptors kept open for idle objects
  std::size_t memory = 16 << 20;      ///< bytes of objects that could not be written
  std::uint64_t budget = UINT64_MAX;  ///< bytes on disk; each writing process may exceed it by up to a sixteenth
  Executor* executor = nullptr;       ///< runs eviction; nullptr: put() does. Outlives the store
  std::uint64_t written_before = 0;   ///< bytes counted as written since the last eviction, see README.md
  bool needs_directory = true;        ///< false: without a usable directory, open() continues in memory
};

class ObjectStore {
 public:
  /// Creates the directory (0700) if missing; refuses one that belongs to another user.
  static Result<std::unique_ptr<ObjectStore>> open(const std::string& directory, ObjectStoreOptions options = {});
  ~ObjectStore();

  /// Stores the bytes under their SHA-256, computed here. If they cannot be written (disk full), the returned object
  /// lives in memory, and find() knows it until newer ones displace it.
  [[nodiscard]] Result<ObjectPtr> put(std::string_view bytes);
  /// nullptr if missing or damaged; a damaged object is set aside. Fails if the disk cannot be examined (io,
  /// permission_denied).
  [[nodiscard]] Result<ObjectPtr> find(const ContentHash& hash);
  /// Why new content is kept in memory only, while that lasts. It costs time, not data.
  [[nodiscard]] std::optional<Error> trouble() const;
  /// Reads all of it. False if it was damaged and is now set aside. Does not count as a use.
  [[nodiscard]] Result<bool> verify(const ContentHash& hash);

 private:
  struct State;
  explicit ObjectStore(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace playfs::cache
