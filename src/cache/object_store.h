// Content on disk, addressed by our own SHA-256 of the bytes: verified once when it is stored, checksummed (XXH3)
// block by block every time it is read.
//
// The directory may be shared by any number of processes and may be deleted at any time. An object appears whole or
// not at all (written aside, renamed); it is not synced, since a torn object is found by its checksums and fetched
// again. What was used longest ago goes when there is more than `budget`, or when the disk is full. Thread-safe.
// Objects stay readable after their file was removed, and after the store is gone.
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

/// An open object. Immutable and thread-safe. Holds a file descriptor while it lives: keep it for a read, not for
/// the life of a file handle.
class Object {
 public:
  virtual ~Object() = default;
  [[nodiscard]] virtual const ContentHash& hash() const = 0;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Up to `size` bytes at `offset`, fewer only at the end. Every block touched is checked; a block that is damaged
  /// fails with `corrupt`, sets the object aside, and the next find() does not find it: fetch it again.
  [[nodiscard]] virtual Result<std::string> read(std::uint64_t offset, std::size_t size) const = 0;
  /// Makes all of it the content of the empty file `fd`, checked as in read(): sharing the room on disk where the file
  /// system can. On an error `fd` may hold anything.
  [[nodiscard]] virtual Status copy_to(int fd) const;
};
using ObjectPtr = std::shared_ptr<const Object>;

/// How exactly the time of an object's last use is kept. Finer would be a write for every read.
inline constexpr std::chrono::minutes kUsedGranularity{10};

/// How much of the budget may be written before room is made again: one part in so many.
inline constexpr std::uint64_t kShareBetweenTrims = 16;

struct ObjectStoreOptions {
  std::size_t open_files = 256;       ///< descriptors kept open for objects that nobody uses at the moment
  std::size_t memory = 16 << 20;      ///< bytes of objects that could not be written
  std::uint64_t budget = UINT64_MAX;  ///< bytes on disk, kept to within a sixteenth for each process that writes
  Executor* executor = nullptr;       ///< where room is made; nullptr: in put(). Outlives the store
  std::uint64_t written_before = 0;   ///< bytes that count as written since room was made last, see README.md
  bool needs_directory = true;        ///< false: where there is none to work in, open() goes on in memory alone
};

class ObjectStore {
 public:
  /// Creates the directory (0700) where it is missing; refuses one that belongs to somebody else.
  static Result<std::unique_ptr<ObjectStore>> open(const std::string& directory, ObjectStoreOptions options = {});
  ~ObjectStore();

  /// Stores the bytes under their SHA-256, which is computed here. Where they cannot be written (disk full) the
  /// object that is returned lives in memory, and find() knows it until newer ones need the room.
  [[nodiscard]] Result<ObjectPtr> put(std::string_view bytes);
  /// nullptr where there is no such object, or a damaged one, which is set aside. Errors: the disk does not let us
  /// look (io, permission_denied).
  [[nodiscard]] Result<ObjectPtr> find(const ContentHash& hash);
  /// Why new content is kept in memory alone, while that lasts: nothing is lost by it but time.
  [[nodiscard]] std::optional<Error> trouble() const;
  /// Reads all of it. False where it was damaged, and is set aside now. Does not count as a use.
  [[nodiscard]] Result<bool> verify(const ContentHash& hash);

 private:
  struct State;
  explicit ObjectStore(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace playfs::cache
