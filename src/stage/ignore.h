// What is kept in the work tree and never published: rules in `.gitignore` and `.playfsignore` with git's meaning,
// and a built-in list. Whole paths are put together by the caller, directory by directory. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace playfs::stage {

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

  /// `path` is relative to the directory of the rules. The last rule that matches decides. A file below an ignored
  /// directory is ignored whatever the rules say of it: that is for the caller to keep to.
  [[nodiscard]] Verdict judge(std::string_view path, bool is_directory) const;

 private:
  struct Rule {
    std::string prefix;   ///< without wildcards
    std::string pattern;  ///< what follows it
    Verdict verdict = Verdict::ignored;
    bool directories_only = false;
    bool anchored = false;  ///< against the whole path, not only its last component
  };
  std::vector<Rule> rules_;
};

/// Version control folders, temporaries of editors and desktops. Every rule file overrules them.
const IgnoreRules& built_in_rules();

/// git's wildmatch with WM_PATHNAME: `*`, `?` and `[…]` stay within a component, `**` between slashes spans them.
/// Takes time proportional to the product of the lengths, whatever the pattern.
bool wildmatch(std::string_view pattern, std::string_view text);

}  // namespace playfs::stage
