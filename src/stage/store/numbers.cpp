#include "stage/store/numbers.h"

#include <xxhash.h>

namespace playfs::stage {

namespace {
// Inode numbers fit into 53 bits, so that programs which keep them in a double see them exactly. Files that were never
// touched have a hash of their path, with this bit set; all others are counted, below a few bits of salt that
// distinguish the stages of one mount.
constexpr std::uint64_t kLowerIno = std::uint64_t{1} << 52;
constexpr unsigned kCounterBits = 38;
constexpr std::uint64_t kInosPerReservation = 1024, kSpoolsPerReservation = 1024;
}  // namespace

std::uint64_t Numbers::take_ino(Batch& batch) {
  if (next_ino_ >= reserved_inos_) {
    std::uint64_t limit = next_ino_ + kInosPerReservation;
    batch.rows().put_value("next_ino", std::to_string(limit));
    batch.after_commit([this, limit] { reserved_inos_ = limit; });
  }
  return (salt_ >> (64 - (52 - kCounterBits))) << kCounterBits | next_ino_++;
}

std::uint64_t Numbers::ino_of(std::string_view path) const {
  return kLowerIno | (XXH3_64bits_withSeed(path.data(), path.size(), salt_) & (kLowerIno - 1));
}

std::uint64_t Numbers::ino_after(std::uint64_t ino) { return kLowerIno | ((ino + 1) & (kLowerIno - 1)); }

void Numbers::record_spool(Batch& batch, std::uint64_t number) {
  if (number < reserved_spools_) return;
  std::uint64_t limit = number + kSpoolsPerReservation;
  batch.rows().put_value("next_spool", std::to_string(limit));
  batch.after_commit([this, limit] { reserved_spools_ = limit; });
}

}  // namespace playfs::stage
