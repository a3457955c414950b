#include "stage/ignore.h"

#include <bitset>
#include <cctype>
#include <optional>

namespace playfs::stage {

namespace {

/// One step of a compiled pattern. A pattern is a nondeterministic automaton whose states are positions in it.
struct Step {
  enum class Kind {
    byte,         // this byte
    any,          // one byte that is no slash
    set,          // one byte of a set, no slash
    star,         // bytes that are no slash
    everything,   // any bytes
    directories,  // nothing, or what the next step takes
    inside,       // any bytes up to a slash and the slash; only after `directories`
  };
  Kind kind = Kind::byte;
  char byte = 0;
  std::bitset<256> set;
};

using Predicate = int (*)(int);
std::optional<Predicate> character_class(std::string_view name) {
  if (name == "alnum") return std::isalnum;
  if (name == "alpha") return std::isalpha;
  if (name == "blank") return std::isblank;
  if (name == "cntrl") return std::iscntrl;
  if (name == "digit") return std::isdigit;
  if (name == "graph") return std::isgraph;
  if (name == "lower") return std::islower;
  if (name == "print") return std::isprint;
  if (name == "punct") return std::ispunct;
  if (name == "space") return std::isspace;
  if (name == "upper") return std::isupper;
  if (name == "xdigit") return std::isxdigit;
  return std::nullopt;
}

/// Reads what follows a '[' and takes it off `rest`; nullopt where the bracket is never closed.
std::optional<std::bitset<256>> take_set(std::string_view& rest) {
  std::bitset<256> set;
  bool negated = rest.starts_with('!') || rest.starts_with('^');
  if (negated) rest.remove_prefix(1);
  auto take = [&]() -> std::optional<unsigned char> {
    if (rest.starts_with('\\')) rest.remove_prefix(1);
    if (rest.empty()) return std::nullopt;
    auto byte = static_cast<unsigned char>(rest[0]);
    rest.remove_prefix(1);
    return byte;
  };
  for (bool first = true; first || !rest.starts_with(']'); first = false) {
    if (rest.starts_with("[:")) {
      auto end = rest.find(":]", 2);
      if (end != std::string_view::npos) {
        auto is_member = character_class(rest.substr(2, end - 2));
        if (!is_member) return std::nullopt;
        for (int byte = 0; byte < 128; ++byte) {
          if ((*is_member)(byte) != 0) set.set(static_cast<std::size_t>(byte));
        }
        rest.remove_prefix(end + 2);
        continue;
      }
    }
    auto low = take();
    if (!low) return std::nullopt;
    auto high = low;
    if (rest.size() >= 2 && rest[0] == '-' && rest[1] != ']') {
      rest.remove_prefix(1);
      high = take();
      if (!high) return std::nullopt;
    }
    for (unsigned byte = *low; byte <= *high; ++byte) set.set(byte);
  }
  rest.remove_prefix(1);
  if (negated) set.flip();
  set.reset('/');
  return set;
}

/// nullopt for a pattern that matches nothing at all.
std::optional<std::vector<Step>> compile(std::string_view pattern) {
  std::vector<Step> steps;
  using Kind = Step::Kind;
  bool after_slash = true;  // or at the beginning
  for (std::string_view rest = pattern; !rest.empty();) {
    char byte = rest[0];
    rest.remove_prefix(1);
    if (byte == '*') {
      bool two = rest.starts_with('*');
      while (rest.starts_with('*')) rest.remove_prefix(1);
      if (two && after_slash && rest.starts_with('/')) {
        rest.remove_prefix(1);
        steps.push_back({Kind::directories, 0, {}});
        steps.push_back({Kind::inside, 0, {}});
        continue;  // still after a slash
      }
      steps.push_back({two && after_slash && rest.empty() ? Kind::everything : Kind::star, 0, {}});
    } else if (byte == '?') {
      steps.push_back({Kind::any, 0, {}});
    } else if (byte == '[') {
      auto set = take_set(rest);
      if (!set) return std::nullopt;
      steps.push_back({Kind::set, 0, *set});
    } else {
      if (byte == '\\') {
        if (rest.empty()) return std::nullopt;
        byte = rest[0];
        rest.remove_prefix(1);
      }
      steps.push_back({Kind::byte, byte, {}});
    }
    after_slash = byte == '/';
  }
  return steps;
}

/// The states that can be reached without another byte. Steps only lead forward, so one pass is enough.
void follow_empty_steps(const std::vector<Step>& steps, std::vector<bool>& states) {
  using Kind = Step::Kind;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!states[i]) continue;
    if (steps[i].kind == Kind::star || steps[i].kind == Kind::everything) states[i + 1] = true;
    if (steps[i].kind == Kind::directories) states[i + 1] = states[i + 2] = true;
  }
}

std::string_view last_component(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Removes trailing spaces that no backslash protects.
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

bool wildmatch(std::string_view pattern, std::string_view text) {
  auto compiled = compile(pattern);
  if (!compiled) return false;
  const auto& steps = *compiled;
  std::vector<bool> states(steps.size() + 1), next(steps.size() + 1);
  states[0] = true;
  follow_empty_steps(steps, states);
  for (char byte : text) {
    next.assign(next.size(), false);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!states[i]) continue;
      switch (steps[i].kind) {
        case Step::Kind::byte:
          if (byte == steps[i].byte) next[i + 1] = true;
          break;
        case Step::Kind::any:
          if (byte != '/') next[i + 1] = true;
          break;
        case Step::Kind::set:
          if (steps[i].set.test(static_cast<unsigned char>(byte))) next[i + 1] = true;
          break;
        case Step::Kind::star:
          if (byte != '/') next[i] = true;
          break;
        case Step::Kind::everything: next[i] = true; break;
        case Step::Kind::directories: break;
        case Step::Kind::inside:
          next[i] = true;
          if (byte == '/') next[i + 1] = true;
          break;
      }
    }
    follow_empty_steps(steps, next);
    states.swap(next);
  }
  return states.back();
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
    // git compares what stands before the first wildcard apart from the rest, so that `a**/b` is `a` and then `**/b`.
    std::size_t literal = rule.anchored ? std::min(line.find_first_of("*?[\\"), line.size()) : 0;
    rule.prefix = line.substr(0, literal);
    rule.pattern = line.substr(literal);
    rules.rules_.push_back(std::move(rule));
  }
  return rules;
}

Verdict IgnoreRules::judge(std::string_view path, bool is_directory) const {
  std::string_view name = last_component(path);
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (rule->directories_only && !is_directory) continue;
    std::string_view text = rule->anchored ? path : name;
    if (!text.starts_with(rule->prefix)) continue;
    if (wildmatch(rule->pattern, text.substr(rule->prefix.size()))) return rule->verdict;
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
