// Whether bytes are what a manifest promised. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/records.h"
#include "model/tree.h"

namespace playfs::content {

/// Fails with `corrupt` where `h` has the form of SHA-256 and is another than the content's, or where `s` is neither
/// the content's size in bytes nor, for text, its length in characters as another client may have counted them (code
/// points, or UTF-16 units). What is absent or opaque promises nothing.
Status check_content(const FileEntry& entry, std::string_view content);

/// The content that chunks make together, in the order of the entry's list, decoded and checked. A chunk's own `hash`
/// counts where the file's says nothing: one in the form of SHA-256 must be that of the chunk's text or, since other
/// clients may take it so, of the whole content.
/// Fails with `corrupt`, or `refused_input` past `ceiling` bytes. REQUIRES: one chunk for each id in the list.
Result<std::string> assemble(const FileEntry& entry, std::span<const FileChunk* const> chunks, std::uint64_t ceiling);

/// The most text that `ceiling` bytes of content can stand in.
std::uint64_t text_ceiling(const FileEntry& entry, std::uint64_t ceiling);

/// A name for where content came from, where its `h` cannot be one: chunk ids and encoding, and the claims that the
/// content was checked against. Within one site. Two entries of the same name have the same content.
std::string origin_key(const FileEntry& entry);

/// The path in the mount under which a file of a revision is found.
std::string subject_of(const FileRef& file);

}  // namespace playfs::content
