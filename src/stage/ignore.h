// Rules for what stays in the work tree and is never published: `.gitignore` and `.playfsignore` with git's semantics,
// and a built-in list. The caller combines them for whole paths, directory by directory. Plain values.
//
// Strangers write rule files, so they are bounded. A file over a bound is rejected as a whole: a silently skipped rule
// would publish what should stay local, and a published revision cannot be recalled. Commits then fail and name the
// file, until someone shortens or deletes it in the tree. A line longer than any path is different: without wildcards
// it matches nothing, and nobody writes such a pattern. It is not a rule; the user is warned, and commits go on.
//
// Rejected: libgit2, which has no such bounds and reads rule files only from a repository on disk.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/manifest.h"
#include "model/tree.h"
#include "stage/wildmatch.h"

namespace playfs::stage {

inline constexpr std::size_t kMaxRuleFile = 1 << 20;       ///< bytes per file
inline constexpr std::size_t kMaxRules = 10'000;           ///< per file
inline constexpr std::size_t kMaxTreeRules = 20'000;       ///< in all files that apply to a staged name
inline constexpr std::size_t kMaxTreeRuleBytes = 4 << 20;  ///< bytes of those files

/// Names of rule files, strongest first.
inline constexpr std::array<std::string_view, 2> kRuleFiles = {".playfsignore", ".gitignore"};
/// Whether the file at this path holds ignore rules.
bool is_rule_file(std::string_view path);
/// Likewise, if it has that mode. A symbolic link has none, whatever its name.
bool is_rules(std::string_view path, FileMode mode);

/// The ignore rule files of a revision, with their content_key(). If others change them, no file that was local-only
/// here gets published because of that, and no staged file is left out.
using RuleFiles = std::map<std::string, std::string>;
RuleFiles rules_of(const Manifest& manifest);
/// nullptr has none.
RuleFiles rules_of(const RevisionTreePtr& revision);

enum class Verdict {
  none,  ///< no rule matches
  ignored,
  included,  ///< re-included by a rule with `!`
};

/// The rules of one file.
class IgnoreRules {
 public:
  /// Rejects nothing: as in git, an invalid line matches nothing.
  static IgnoreRules parse(std::string_view text);

  /// `path` is relative to the directory of the rules. The last matching rule decides; nullopt if the effort ran out.
  /// The caller must treat everything below an ignored directory as ignored, whatever the rules say.
  [[nodiscard]] std::optional<Verdict> judge(std::string_view path, bool is_directory, Effort& effort) const;

  [[nodiscard]] std::size_t size() const { return rules_.size(); }
  /// There were more than kMaxRules; the rest was not read.
  [[nodiscard]] bool is_cut_off() const { return is_cut_off_; }
  /// Number of lines that are not rules because they are longer than any path.
  [[nodiscard]] std::size_t overlong() const { return overlong_; }

 private:
  struct Rule {
    std::string prefix;   ///< literal text before the first wildcard
    Pattern pattern{""};  ///< the rest
    Verdict verdict = Verdict::ignored;
    bool directories_only = false;
    bool anchored = false;  ///< matched against the whole path, not just its last component
  };
  std::vector<Rule> rules_;
  std::size_t overlong_ = 0;
  bool is_cut_off_ = false;
};

/// Temporary files of editors, desktops and network file systems. Every rule file overrides them.
const IgnoreRules& built_in_rules();

}  // namespace playfs::stage
