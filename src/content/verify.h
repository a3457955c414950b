// Checks bytes against a manifest's claims. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/records.h"
#include "model/tree.h"

namespace playfs::content {

/// Fails with `corrupt` if `h` looks like SHA-256 and differs from the content's, or if `s` is neither the content's
/// size in bytes nor, for text, its length in code points or UTF-16 units, as other clients may count. Absent or opaque
/// claims are not checked.
Status check_content(const FileEntry& entry, std::string_view content);

/// Assembles, decodes and verifies the content of the chunks, in list order. A chunk's own `hash` counts only if the
/// file's claim proves nothing: if it looks like SHA-256 it must match the chunk's text or, as some clients may mean
/// it, the whole content. Fails with `corrupt`, or `refused_input` above `ceiling` bytes. REQUIRES: one chunk for each
/// id in the list.
Result<std::string> assemble(const FileEntry& entry, std::span<const FileChunk* const> chunks, std::uint64_t ceiling);

/// The most text that may encode `ceiling` bytes of content.
std::uint64_t text_ceiling(const FileEntry& entry, std::uint64_t ceiling);

/// A name for the origin of content whose `h` cannot serve as one: chunk ids, encoding, and the claims it was checked
/// against. Valid within one site; equal keys mean equal content.
std::string origin_key(const FileEntry& entry);

/// The path in the mount of a file in a revision.
std::string subject_of(const FileRef& file);

}  // namespace playfs::content
