// A manifest entry as bytes for a column of the stage's database, unknown fields included. Not an exchange format:
// the service's JSON is wire's. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/manifest.h"
#include "stage/stage.h"

namespace playfs::stage {

std::string encode_entry(const FileEntry& entry);
/// nullopt where the bytes are no encoded entry.
std::optional<FileEntry> decode_entry(std::string_view bytes);

/// The list of what was left in conflict, as printable text.
std::string encode_conflicted(const std::vector<Conflicted>& list);
std::optional<std::vector<Conflicted>> decode_conflicted(std::string_view text);

}  // namespace playfs::stage
