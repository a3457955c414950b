#include "vfs/control/text_room.h"

#include <algorithm>
#include <filesystem>

#include "base/fd.h"
#include "vfs/control/journal_entry.h"

namespace playfs::vfs {
namespace {

/// 0 if it was sent or removed meanwhile.
std::uint64_t size_of(const std::string& path) {
  std::error_code gone;
  const auto size = std::filesystem::file_size(path, gone);
  return gone ? 0 : size;
}

}  // namespace

std::string unsent_directory_of(const std::string& directory) { return directory + "/unsent"; }

std::vector<std::string> unsent_texts(const std::string& unsent) { return files_in(unsent); }

std::optional<std::string> saved_copy(const std::string& unsent, std::string_view text) {
  const std::vector<std::string> saved = unsent_texts(unsent);
  auto is_same = [&](const std::string& path) {
    if (size_of(path) != text.size()) return false;
    const auto kept = read_file(path, text.size());
    return kept && *kept == text;
  };
  const auto same = std::find_if(saved.begin(), saved.end(), is_same);
  return same == saved.end() ? std::nullopt : std::optional(*same);
}

Status check_room(const std::string& directory, std::uint64_t bytes, const std::string& own) {
  const std::string unsent = unsent_directory_of(directory);
  std::vector<std::string> kept = unsent_texts(unsent);
  for (std::string& path : files_in(directory))
    if (path.ends_with(kDraftSuffix) && path != own) kept.push_back(std::move(path));
  std::uint64_t taken = 0;
  for (const std::string& path : kept) taken += size_of(path);
  if (kept.size() < kMostTexts && taken + bytes <= kMostTextBytes) return {};
  return fail(ErrorCode::no_space,
              "the text was not accepted, since " + unsent + " is full: with those that are being written, it has " +
                  std::to_string(kept.size()) + " texts that were not sent (" + std::to_string(taken >> 10) + " KiB)",
              "send those, or remove them; then write this again");
}

}  // namespace playfs::vfs
