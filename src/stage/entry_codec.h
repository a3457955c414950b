// A manifest entry as bytes for a column of the stage's database, unknown fields included. Not an exchange format:
// the service's JSON is wire's. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/manifest.h"

namespace playfs::stage {

std::string encode_entry(const FileEntry& entry);
/// nullopt where the bytes are no encoded entry.
std::optional<FileEntry> decode_entry(std::string_view bytes);

}  // namespace playfs::stage
