// What is kept in the work tree and never published: rules in `.gitignore` and `.playfsignore` with git's meaning,
// and a built-in list. Whole paths are put together by the caller, directory by directory. Plain values.
//
// Rule files are written by strangers, and so are bounded. What is over a bound is never judged by half: a rule that is
// silently left out publishes what was to stay here, and nothing takes a published revision back. So a commit is
// refused, by name of the file, until somebody shortens it or deletes it, which the tree itself is the place for.
// A line longer than any path is another matter: spelled out it could match nothing, and nobody writes such a one of
// wildcards. It is no rule, the user is told, and no commit has to wait for it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stage/wildmatch.h"

namespace playfs::stage {

inline constexpr std::size_t kMaxRuleFile = 1 << 20;       ///< bytes of one file
inline constexpr std::size_t kMaxRules = 10'000;           ///< of one file
inline constexpr std::size_t kMaxTreeRules = 20'000;       ///< of all files that speak of something that is staged
inline constexpr std::size_t kMaxTreeRuleBytes = 4 << 20;  ///< the bytes of those files

/// The names of rule files, the strongest first.
inline constexpr std::array<std::string_view, 2> kRuleFiles = {".playfsignore", ".gitignore"};
/// Whether a file at that path says what is ignored.
bool is_rule_file(std::string_view path);

enum class Verdict {
  none,  ///< no rule speaks of it
  ignored,
  included,  ///< a rule with `!` takes it back
};

/// The rules of one file.
class IgnoreRules {
 public:
  /// Nothing is refused: a line that makes no sense matches nothing, as in git.
  static IgnoreRules parse(std::string_view text);

  /// `path` is relative to the directory of the rules. The last rule that matches decides; nullopt where the effort did
  /// not suffice. A file below an ignored directory is ignored whatever the rules say of it: that is for the caller to
  /// keep to.
  [[nodiscard]] std::optional<Verdict> judge(std::string_view path, bool is_directory, Effort& effort) const;

  [[nodiscard]] std::size_t size() const { return rules_.size(); }
  /// There were more than kMaxRules, and the rest was not read.
  [[nodiscard]] bool is_cut_off() const { return is_cut_off_; }
  /// Lines that are no rules because they are longer than any path.
  [[nodiscard]] std::size_t overlong() const { return overlong_; }

 private:
  struct Rule {
    std::string prefix;   ///< without wildcards
    Pattern pattern{""};  ///< what follows it
    Verdict verdict = Verdict::ignored;
    bool directories_only = false;
    bool anchored = false;  ///< against the whole path, not only its last component
  };
  std::vector<Rule> rules_;
  std::size_t overlong_ = 0;
  bool is_cut_off_ = false;
};

/// Version control folders, temporaries of editors and desktops. Every rule file overrules them.
const IgnoreRules& built_in_rules();

}  // namespace playfs::stage
