#include "app/transfer_progress.h"

#include <algorithm>
#include <utility>

#include "vfs/control/control_text.h"

namespace playfs::app {

namespace {
/// Most transfers take less, and a line that flashes up would only disturb.
constexpr std::chrono::seconds kUnshown{2};
}  // namespace

void Amount::add(const FileEntry& entry) {
  ++files;
  const std::uint64_t size = entry.inline_text ? entry.inline_text->size() : entry.size_claim.value_or(0);
  bytes = std::min(bytes + std::min(size, kUnbelievable), kUnbelievable);
}

Amount Amount::of(const Manifest& manifest) {
  Amount whole;
  for (const auto& [path, entry] : manifest.files) whole.add(entry);
  return whole;
}

void TransferProgress::begin(std::string what, Amount total) {
  const std::uint64_t arrived = arrived_();
  MutexLock lock(mutex_);
  what_ = std::move(what);
  total_ = total;
  done_ = {};
  arrived_before_ = arrived;
  begun_ = std::chrono::steady_clock::now();
}

void TransferProgress::file_done(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  ++done_.files;
  done_.bytes += bytes;
}

void TransferProgress::end() {
  MutexLock lock(mutex_);
  what_.clear();
}

std::string TransferProgress::words() const {
  const std::uint64_t arrived_now = arrived_();
  std::string text;
  Amount total, done;
  std::chrono::nanoseconds elapsed{};
  {
    MutexLock lock(mutex_);
    elapsed = std::chrono::steady_clock::now() - begun_;
    if (what_.empty() || elapsed < kUnshown) return "";
    text = what_;
    total = total_;
    done = done_;
    done.bytes = std::max(done.bytes, arrived_now - arrived_before_);
  }
  // A publisher may claim any size, and what arrives is encoded.
  if (total.bytes == kUnbelievable) total.bytes = 0;
  if (total.bytes > 0) done.bytes = std::min(done.bytes, total.bytes);
  const auto milliseconds =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count());
  const std::uint64_t rate = done.bytes * 1000 / milliseconds;
  std::string before = ": ";
  auto append = [&](const std::string& words) { text += std::exchange(before, ", ") + words; };
  if (total.files > 1) append(std::to_string(done.files) + " of " + std::to_string(total.files) + " files");
  else if (done.files > 0) append(std::to_string(done.files) + (done.files == 1 ? " file" : " files"));
  append(vfs::size_words(done.bytes) + (total.bytes > 0 ? " of " + vfs::size_words(total.bytes) : ""));
  if (rate > 0) append(vfs::size_words(rate) + "/s");
  if (rate > 0 && done.bytes < total.bytes)
    append(vfs::duration_words((total.bytes - done.bytes) / rate + 1) + " left");
  return text;
}

}  // namespace playfs::app
