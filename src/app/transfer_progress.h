// How far a command has come that reads or writes many files: of a total that is known beforehand, or without one.
// Thread-safe: one thread works and counts, another shows.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "model/manifest.h"

namespace playfs::app {

/// A total that a publisher made up, or gave in another unit than bytes.
inline constexpr std::uint64_t kUnbelievable = std::uint64_t{1} << 40;

struct Amount {
  std::uint64_t files = 0, bytes = 0;  ///< 0: unknown; `bytes` is at most kUnbelievable

  /// Of all files in a tree, as far as their publishers say.
  static Amount of(const Manifest& manifest);
  void add(const FileEntry& entry);
};

class TransferProgress {
 public:
  /// `arrived`: bytes that have arrived so far, of whatever; what is counted here may lag behind it, since files are
  /// fetched ahead. It is called until end().
  explicit TransferProgress(std::function<std::uint64_t()> arrived) : arrived_(std::move(arrived)) {}

  /// `what` is going on: "Exporting".
  void begin(std::string what, Amount total) PLAYFS_EXCLUDES(mutex_);
  void file_done(std::uint64_t bytes) PLAYFS_EXCLUDES(mutex_);
  /// Nothing more is shown. Call it before the command's own output.
  void end() PLAYFS_EXCLUDES(mutex_);

  /// "Exporting: 12 of 340 files, 3 MB of 20 MB, 512 KB/s, 34 s left"; "" in the first two seconds.
  [[nodiscard]] std::string words() const PLAYFS_EXCLUDES(mutex_);

 private:
  const std::function<std::uint64_t()> arrived_;
  mutable Mutex mutex_;
  std::string what_ PLAYFS_GUARDED_BY(mutex_);  ///< "": nothing is going on
  Amount total_ PLAYFS_GUARDED_BY(mutex_), done_ PLAYFS_GUARDED_BY(mutex_);
  std::uint64_t arrived_before_ PLAYFS_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point begun_ PLAYFS_GUARDED_BY(mutex_);
};

/// Ends it at the end of a scope, whichever way that is left.
class EndOfTransfer {
 public:
  /// nullptr: there is none.
  explicit EndOfTransfer(TransferProgress* progress) : progress_(progress) {}
  ~EndOfTransfer() {
    if (progress_ != nullptr) progress_->end();
  }
  EndOfTransfer(const EndOfTransfer&) = delete;
  EndOfTransfer& operator=(const EndOfTransfer&) = delete;

 private:
  TransferProgress* const progress_;
};

}  // namespace playfs::app
