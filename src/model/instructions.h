// Files that give instructions to agents: what a harness or an editor loads by itself, as soon as it starts in a
// directory, to tell a model what to do or to run what the file names. In somebody else's project that is a stranger's
// text, which nobody has read. So such files can be hidden (`instructions=hide`).
//
// They are hidden, not refused: manifests, merges and commits treat them as any file. Only what shows a tree leaves
// them out, so clients that show them and clients that do not publish the same. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/manifest.h"

namespace playfs {

/// Which of them a tree shows.
enum class Instructions {
  show,
  hide,         ///< none that is published
  hide_others,  ///< those that this author published from this machine
};

/// "show" or "hide", as in settings; nullopt for any other text.
std::optional<Instructions> parse_instructions(std::string_view text);

/// Whether an agent would take a file or directory of that name for its instructions. Compared as `.git` is, in any
/// case, since readers on some file systems would find it.
bool is_instructions_name(std::string_view name);
/// Whether that is so of any component: agents started in a directory load what is there.
bool gives_instructions(std::string_view path);

/// What says that a published file with such a path is somebody's own: its content, and whether it is a link, since a
/// text of theirs as a link would lead to whatever strangers put there. nullopt: unknown.
std::optional<ContentHash> instructions_identity(const FileEntry& entry);
/// That of a link to `target`.
ContentHash instructions_identity_of_link(std::string_view target);

/// The paths of the manifest's files that do, in order.
std::vector<std::string> instructions_in(const Manifest& manifest);

/// Why one is not shown, human-readable.
inline constexpr std::string_view kWhyNoInstructions = "it gives instructions to agents";

}  // namespace playfs
