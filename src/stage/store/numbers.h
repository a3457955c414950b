// Numbers for inodes and spool files. None is ever used twice, so what was once given up stays so. They are recorded a
// thousand ahead, so most operations need no row for them.
//
// Guarded by the stage's mutex.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "stage/store/row_store.h"

namespace playfs::stage {

class Numbers {
 public:
  Numbers() = default;
  /// As recorded. `salt` distinguishes the stages of one mount.
  explicit Numbers(std::uint64_t salt, std::uint64_t next_ino = 1, std::uint64_t next_spool = 1)
      : salt_(salt), next_ino_(next_ino), reserved_inos_(next_ino), next_spool_(next_spool) {}

  [[nodiscard]] std::uint64_t take_ino(Batch& batch);
  /// The number of a file that was never touched, by its path.
  [[nodiscard]] std::uint64_t ino_of(std::string_view path) const;
  /// The one to try if that is taken.
  [[nodiscard]] static std::uint64_t ino_after(std::uint64_t ino);

  [[nodiscard]] std::uint64_t take_spool() { return next_spool_++; }
  /// A row is going to name that spool file.
  void record_spool(Batch& batch, std::uint64_t number);
  /// That number is in use already.
  void skip_spool(std::uint64_t number) { next_spool_ = std::max(next_spool_, number + 1); }

 private:
  std::uint64_t salt_ = 0;
  std::uint64_t next_ino_ = 1;
  std::uint64_t reserved_inos_ = 1;  ///< numbers below may be used without a row
  std::uint64_t next_spool_ = 1;
  std::uint64_t reserved_spools_ = 0;  ///< numbers below are recorded as used
};

}  // namespace playfs::stage
