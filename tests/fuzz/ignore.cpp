// Ignore rules: two fields with rules, then paths. Later rules override earlier ones, and patterns match as documented,
// in a number of steps bounded by the product of the lengths.
#include "stage/ignore.h"

#include "fuzz.h"

using namespace playfs::stage;

namespace {

/// git's wildmatch, implemented straight from its description, for patterns without brackets and short texts.
bool described(std::string_view pattern, std::string_view text, bool after_slash = true) {
  if (pattern.empty()) return text.empty();
  const char first = pattern.front();
  if (first == '*') {
    const std::string_view rest = pattern.substr(std::min(pattern.find_first_not_of('*'), pattern.size()));
    const bool two = pattern.starts_with("**") && after_slash;
    if (two && rest.starts_with('/')) {
      // Nothing, or any number of directories.
      if (described(rest.substr(1), text)) return true;
      for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == '/' && described(rest.substr(1), text.substr(i + 1))) return true;
      return false;
    }
    for (std::size_t i = 0;; ++i) {
      if (described(rest, text.substr(i), false)) return true;
      if (i == text.size() || (text[i] == '/' && !(two && rest.empty()))) return false;
    }
  }
  if (first == '\\') {
    if (pattern.size() == 1) return false;
    pattern.remove_prefix(1);
  }
  if (text.empty() || (first == '?' ? text.front() == '/' : text.front() != pattern.front())) return false;
  return described(pattern.substr(1), text.substr(1), pattern.front() == '/');
}

Verdict judge(const IgnoreRules& rules, std::string_view path, bool is_directory) {
  Effort all;
  return *rules.judge(path, is_directory, all);
}

bool matches(std::string_view pattern, std::string_view text) {
  Effort bounded(16 + 16 * (pattern.size() + 1) * (text.size() + 1));
  const auto result = Pattern(pattern).matches(text, bounded);
  FUZZ_CHECK(result.has_value());
  return *result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::string earlier(input.field()), later(input.field());
  const IgnoreRules first = IgnoreRules::parse(earlier), second = IgnoreRules::parse(later);
  const bool has_mark =
      later.starts_with("\xef\xbb\xbf");  // a byte order mark is skipped at the beginning of a file and nowhere else
  const IgnoreRules both = IgnoreRules::parse(earlier + "\n" + later);
  for (int paths = 0; paths < 8 && !input.empty(); ++paths) {
    const std::string_view path = input.field();
    for (bool is_directory : {false, true}) {
      const Verdict last = judge(second, path, is_directory);
      const Verdict expected = last == Verdict::none ? judge(first, path, is_directory) : last;
      FUZZ_CHECK(has_mark || judge(both, path, is_directory) == expected);
    }
    const bool is_matched = matches(later, path);
    // The straightforward version tries every way to split a text among the stars.
    if (std::count(later.begin(), later.end(), '*') > 5) continue;
    if (later.size() > 16 || path.size() > 24 || later.find('[') != std::string::npos) continue;
    FUZZ_CHECK(is_matched == described(later, path));
  }
  return 0;
}
