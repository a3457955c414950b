#include "app/publication_words.h"

#include <algorithm>

#include "vfs/control/control_text.h"

namespace playfs::app {

namespace {

constexpr std::size_t kBarWidth = 12;  // leaves room for the words on a terminal of 80 columns

std::string bar(std::uint64_t done, std::uint64_t total) {
  const std::size_t filled = total == 0 ? 0 : static_cast<std::size_t>(std::min(done, total) * kBarWidth / total);
  return "[" + std::string(filled, '#') + std::string(kBarWidth - filled, ' ') + "] ";
}

}  // namespace

std::string words_for_publication(const vfs::WorkStatus& status) {
  std::string left;
  if (status.chunks_total > 0) {
    left = std::to_string(status.chunks_done) + "/" + std::to_string(status.chunks_total) + " chunks";
    if (status.bytes_total > 0)
      left += ", " + vfs::size_words(status.bytes_done) + " of " + vfs::size_words(status.bytes_total);
    // During a backoff the next attempt matters more, and the line has no room for both.
    if (status.seconds_left > 0 && status.retry_after_s == 0)
      left += ", " + vfs::duration_words(status.seconds_left) + " left";
  }
  const std::string behind = status.queued > 0 ? " (+" + std::to_string(status.queued) + " queued)" : "";
  const std::string shown = bar(status.chunks_done, status.chunks_total);
  if (status.retry_after_s > 0)
    return "Waiting   " + shown + "retrying in " + vfs::duration_words(status.retry_after_s) +
           (left.empty() ? "" : "; " + left) + behind;
  switch (status.phase) {
    case publish::Phase::idle: return "";
    case publish::Phase::freezing:
    case publish::Phase::planning: return "Planning" + behind;
    case publish::Phase::uploading: return "Uploading " + shown + left + behind;
    case publish::Phase::posting: return "Publishing" + behind;
    case publish::Phase::verifying: return "Verifying" + behind;
  }
  return "";
}

std::string words_for_publication(const publish::Progress& progress) {
  vfs::WorkStatus status;
  status.set(progress);
  return words_for_publication(status);
}

}  // namespace playfs::app
