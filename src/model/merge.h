// Three-way merge of manifests. Pure functions.
//
// For each path: a change on one side wins; equal changes on both sides count once; a text file changed on both sides
// is merged line by line, as in git; anything else is a conflict. Which side is called ours affects only the labels of
// conflict markers and which version is kept at a conflict.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/json.h"
#include "model/manifest.h"

namespace playfs {

/// Larger text (in bytes) conflicts instead of being merged by lines, because base and both sides must be in memory.
inline constexpr std::size_t kMaxMergedText = 4 << 20;
/// The same for lines, each of which takes memory beside its bytes.
inline constexpr std::size_t kMaxMergedLines = 64 << 10;
/// The most text that one merge produces from both sides, over all files in path order.
inline constexpr std::size_t kMostMergedText = 16 << 20;
/// The most that one merge may cost (cost_of_merge), over all files in path order; files that would exceed it conflict.
/// Reading so many bytes costs as much as a line.
inline constexpr std::size_t kMostMergeCost = 2 << 20;
inline constexpr std::size_t kBytesPerCost = 64;

enum class MergeSide { base, ours, theirs };

/// Reads the content of an entry in one of the three manifests.
using ReadEntry = std::function<Result<std::string>(MergeSide side, const std::string& path, const FileEntry& entry)>;

enum class ConflictKind {
  text,       ///< both changed the same lines: `marked` holds both, with markers
  content,    ///< both changed a file that is not text
  deleted,    ///< one side changed it, the other deleted it
  kind,       ///< file on one side, symbolic link or directory on the other
  published,  ///< not a file: a refused entry, a manifest field, a key of `state`
};

/// The result at one path.
struct MergedFile {
  FileEntry entry;                  ///< one side's entry; with `text`, only mode and unknown fields apply
  std::optional<std::string> text;  ///< new content merged from both sides, not published anywhere
};

struct Conflict {
  std::string path;
  ConflictKind kind = ConflictKind::content;
  std::string reason;  ///< human-readable
  std::string marked;  ///< for kind `text`: the file with conflict markers
  /// For a file against a directory: what theirs has at or below the path, omitted from Merge::files.
  std::map<std::string, MergedFile> displaced = {};
};

struct Merge {
  std::map<std::string, MergedFile, std::less<>> files;  ///< at a conflict: ours, or theirs if ours has none
  std::vector<RefusedEntry> refused;
  JsonObject extra;
  Json state;
  std::vector<Conflict> conflicts;  ///< by path
};

/// The parts of a revision that a merge uses.
struct Version {
  const Manifest& manifest;
  const Json& state;  ///< null if none
};

struct MergeLabels {
  std::string ours = "ours";
  std::string theirs = "theirs";
};

/// Fails only if `read` fails. REQUIRES: continuations have been read (Continuation::is_read).
Result<Merge> merge_versions(const Version& base, const Version& ours, const Version& theirs, const ReadEntry& read,
                             const MergeLabels& labels = {});

/// Merges text line by line, as `git merge-file` does. `conflicts`: the text has markers.
struct MergedText {
  std::string text;
  bool conflicts = false;
};
Result<MergedText> merge_text(std::string_view base, std::string_view ours, std::string_view theirs,
                              const MergeLabels& labels = {});

std::size_t count_lines(std::string_view text);
/// The lines that a merge of texts reads, and those that it compares: between the first and the last change of a side.
/// libgit2's effort grows little faster, whatever is in them. The same whichever side is ours.
std::size_t cost_of_merge(std::string_view base, std::string_view ours, std::string_view theirs);

/// Finds conflict markers, as written by merge_text, in text that arrives in pieces.
class MarkerSearch {
 public:
  void take(std::string_view piece);
  /// Call once, after the last piece.
  [[nodiscard]] bool found();

 private:
  void end_line();

  std::string line_;  ///< as much of the line's start as matters
  bool begun_ = false, divided_ = false, found_ = false;
};
bool has_conflict_markers(std::string_view text);

/// Merges JSON values: objects by key, anything else as a whole. If both sides changed a value differently, ours wins
/// (or `at_conflict`, if given) and its path (keys joined by '.') is added to `conflicts`.
Json merge_json(const Json& base, const Json& ours, const Json& theirs, std::vector<std::string>& conflicts,
                const Json* at_conflict = nullptr);

}  // namespace playfs
