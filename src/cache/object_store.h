// Content on disk, addressed by our own SHA-256 of the bytes: verified once when it is stored, checksummed (XXH3)
// block by block every time it is read.
//
// The directory may be shared by any number of processes and may be deleted at any time. An object appears whole or
// not at all (written aside, renamed); it is not synced, since a torn object is found by its checksums and fetched
// again. Thread-safe. Objects stay readable after their file was removed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/content_hash.h"

namespace playfs::cache {

/// An open object. Immutable and thread-safe.
class Object {
 public:
  virtual ~Object() = default;
  [[nodiscard]] virtual const ContentHash& hash() const = 0;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Up to `size` bytes at `offset`, fewer only at the end. Every block touched is checked; a block that is damaged
  /// fails with `corrupt`, sets the object aside, and the next open() does not find it.
  [[nodiscard]] virtual Result<std::string> read(std::uint64_t offset, std::size_t size) const = 0;
};
using ObjectPtr = std::shared_ptr<const Object>;

class ObjectStore {
 public:
  /// Creates the directory (0700) where it is missing.
  static Result<std::unique_ptr<ObjectStore>> open(const std::string& directory);
  ~ObjectStore();

  /// Stores the bytes under their SHA-256, which is computed here. Where they cannot be written (disk full) the
  /// object that is returned lives in memory.
  [[nodiscard]] Result<ObjectPtr> put(std::string_view bytes);
  /// nullptr where there is no such object.
  [[nodiscard]] Result<ObjectPtr> find(const ContentHash& hash);

 private:
  struct State;
  explicit ObjectStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace playfs::cache
