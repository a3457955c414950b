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

/// Whether it is what write_file_atomically renames to a text's name, or what a mount left that died meanwhile.
bool is_being_written(const std::string& path) {
  constexpr std::size_t kRandomSuffix = 7;
  if (path.size() < kRandomSuffix || path[path.size() - kRandomSuffix] != '.') return false;
  const std::string_view name(path.data(), path.size() - kRandomSuffix);
  return name.ends_with(".txt") || name.ends_with(".json");
}

}  // namespace

std::string unsent_directory_of(const std::string& directory) { return directory + "/unsent"; }

std::vector<std::string> unsent_texts(const std::string& unsent) {
  std::vector<std::string> texts = files_in(unsent);
  std::erase_if(texts, is_being_written);
  return texts;
}

bool is_saved_as(const std::string& path, std::string_view text) {
  if (size_of(path) != text.size()) return false;
  const auto kept = read_file(path, text.size());
  return kept && *kept == text;
}

Status check_room(const std::string& directory, std::uint64_t bytes, const std::string& own) {
  const std::string unsent = unsent_directory_of(directory);
  std::vector<std::string> kept = files_in(unsent);
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
