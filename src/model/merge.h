// Three-way merge of manifests: what two lines of work that come from one base are together. Pure functions.
//
// Path by path: what one side alone changed is taken; what both changed alike is taken once; a text file that both
// changed is merged line by line, as git does it; everything else is a conflict. The outcome does not depend on which
// side is called ours, but for the labels between conflict markers and for what stands in a conflict's place.
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

/// Larger text is not merged line by line but is a conflict, since both sides and their base have to be in memory for
/// that. In bytes.
inline constexpr std::size_t kMaxMergedText = 4 << 20;
/// The most that one merge makes of both sides' text, of all files together, in their order by path.
inline constexpr std::size_t kMostMergedText = 16 << 20;

enum class MergeSide { base, ours, theirs };

/// The bytes of an entry of one of the three manifests.
using ReadEntry = std::function<Result<std::string>(MergeSide side, const std::string& path, const FileEntry& entry)>;

enum class ConflictKind {
  text,       ///< both changed the same lines: `marked` has both, between markers
  content,    ///< both changed a file that is no text
  deleted,    ///< one changed what the other deleted
  kind,       ///< one made a symbolic link of it, or a file stands where the other has a directory
  published,  ///< something of the manifest that is no file: an entry that is not shown, a field, a key of `state`
};

/// What stands at a path after a merge.
struct MergedFile {
  FileEntry entry;                  ///< as one side has it; where `text` is engaged, its mode and unknown fields
  std::optional<std::string> text;  ///< made of both sides: the new content, which nobody has published
};

struct Conflict {
  std::string path;
  ConflictKind kind = ConflictKind::content;
  std::string reason;  ///< in words for a person
  std::string marked;  ///< of `text`: the file with conflict markers
  /// Of a file against a directory: what theirs has at or below the path, which has no place in Merge::files.
  std::map<std::string, MergedFile> displaced = {};
};

struct Merge {
  std::map<std::string, MergedFile, std::less<>> files;  ///< at a conflict: ours, or theirs where ours has none
  std::vector<RefusedEntry> refused;
  JsonObject extra;
  Json state;
  std::vector<Conflict> conflicts;  ///< by path
};

/// One version of a project: what a merge takes of a revision.
struct Version {
  const Manifest& manifest;
  const Json& state;  ///< null for none
};

struct MergeLabels {
  std::string ours = "ours";
  std::string theirs = "theirs";
};

/// Fails only where `read` does. A manifest's continuation has to be read (Continuation::is_read).
Result<Merge> merge_versions(const Version& base, const Version& ours, const Version& theirs, const ReadEntry& read,
                             const MergeLabels& labels = {});

/// Merges text line by line, as `git merge-file` does. `conflicts`: it has markers.
struct MergedText {
  std::string text;
  bool conflicts = false;
};
Result<MergedText> merge_text(std::string_view base, std::string_view ours, std::string_view theirs,
                              const MergeLabels& labels = {});

/// Looks for conflict markers as merge_text leaves them, in text that comes piece by piece.
class MarkerSearch {
 public:
  void take(std::string_view piece);
  /// Asked once, behind the last piece.
  [[nodiscard]] bool found();

 private:
  void end_line();

  std::string line_;  ///< as much of its beginning as matters
  bool begun_ = false, divided_ = false, found_ = false;
};
bool has_conflict_markers(std::string_view text);

/// Merges JSON values: objects key by key, all else as a whole. Where both changed a value in different ways its path
/// (keys joined by '.') is added to `conflicts`, and ours stands.
Json merge_json(const Json& base, const Json& ours, const Json& theirs, std::vector<std::string>& conflicts);

}  // namespace playfs
