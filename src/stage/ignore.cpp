#include "stage/ignore.h"

#include <algorithm>

#include "model/path.h"

namespace playfs::stage {

namespace {

std::string_view last_component(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Removes trailing spaces that are not escaped by a backslash.
std::string_view without_trailing_spaces(std::string_view line) {
  std::size_t end = line.size();
  bool in_spaces = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ' ') {
      if (!in_spaces) end = i;
      in_spaces = true;
      continue;
    }
    if (line[i] == '\\' && ++i == line.size()) return line;
    in_spaces = false;
  }
  return in_spaces ? line.substr(0, end) : line;
}

}  // namespace

bool is_rule_file(std::string_view path) {
  return std::find(kRuleFiles.begin(), kRuleFiles.end(), last_component(path)) != kRuleFiles.end();
}

bool is_rules(std::string_view path, FileMode mode) { return is_rule_file(path) && mode != FileMode::symlink; }

RuleFiles rules_of(const Manifest& manifest) {
  RuleFiles rules;
  for (const auto& [path, entry] : manifest.files)
    if (is_rules(path, entry.mode)) rules.emplace(path, content_key(entry));
  return rules;
}

RuleFiles rules_of(const RevisionTreePtr& revision) {
  return revision ? rules_of(revision->tree.manifest()) : RuleFiles();
}

IgnoreRules IgnoreRules::parse(std::string_view text) {
  IgnoreRules rules;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty()) {
    auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.starts_with('#')) continue;
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = without_trailing_spaces(line.substr(0, line.find('\0')));
    Rule rule;
    if (line.starts_with('!')) {
      rule.verdict = Verdict::included;
      line.remove_prefix(1);
    }
    if (line.ends_with('/')) {
      rule.directories_only = true;
      line.remove_suffix(1);
    }
    rule.anchored = line.find('/') != std::string_view::npos;
    if (line.starts_with('/')) line.remove_prefix(1);
    if (line.empty()) continue;
    if (line.size() > kMaxPathLength) {
      ++rules.overlong_;
      continue;
    }
    if (rules.rules_.size() == kMaxRules) {
      rules.is_cut_off_ = true;
      break;
    }
    // git compares the text before the first wildcard separately, so that `a**/b` is `a` followed by `**/b`.
    std::size_t literal = rule.anchored ? std::min(line.find_first_of("*?[\\"), line.size()) : 0;
    rule.prefix = line.substr(0, literal);
    rule.pattern = Pattern(line.substr(literal));
    rules.rules_.push_back(std::move(rule));
  }
  return rules;
}

std::optional<Verdict> IgnoreRules::judge(std::string_view path, bool is_directory, Effort& effort) const {
  std::string_view name = last_component(path);
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (!effort.spend()) return std::nullopt;
    if (rule->directories_only && !is_directory) continue;
    std::string_view text = rule->anchored ? path : name;
    if (!text.starts_with(rule->prefix)) continue;
    auto matches = rule->pattern.matches(text.substr(rule->prefix.size()), effort);
    if (!matches) return std::nullopt;
    if (*matches) return rule->verdict;
  }
  return Verdict::none;
}

const IgnoreRules& built_in_rules() {
  static const IgnoreRules rules = IgnoreRules::parse(
      "*.sw[a-p]\n*~\n.#*\n\\#*#\n4913\n.*.kate-swp\n.~lock.*#\n"
      ".DS_Store\n._*\n.fuse_hidden*\n.nfs[0-9a-f]*\nThumbs.db\n");
  return rules;
}

}  // namespace playfs::stage
