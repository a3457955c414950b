#include "runtime/toml_table.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace playfs::runtime {

namespace {

std::string printed(const toml::table& document) {
  std::ostringstream text;
  text << toml::default_formatter(document);
  return std::move(text).str();
}

using Line = toml::source_index;  // counted from 1

void add_lines(const toml::node& node, std::set<Line>& lines) {
  const toml::source_region& region = node.source();
  for (Line line = region.begin.line; line <= std::max(region.begin.line, region.end.line); ++line) lines.insert(line);
}

/// `text` without `lines`, with `section` in their place, or at the end if there are none.
std::string replace_lines(std::string_view text, const std::set<Line>& lines, const std::string& section) {
  std::string result;
  bool placed = lines.empty();
  for (Line number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    if (lines.count(number) == 0) {
      result += text.substr(0, end);
    } else if (!placed) {
      result += section;
      placed = true;
    }
    text.remove_prefix(end);
  }
  if (!lines.empty() || section.empty()) return result;
  if (!result.empty() && result.back() != '\n') result += '\n';
  return result + (result.empty() ? "" : "\n") + section;
}

}  // namespace

Result<toml::table> parse_secret_toml(std::string_view text, const std::string& name) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    // The parser's message may quote the text.
    return fail(ErrorCode::invalid_argument,
                name + ", line " + std::to_string(error.source().begin.line) + ": not valid TOML");
  }
}

std::string with_toml_table(std::string_view text, std::string_view key, const std::optional<toml::table>& table) {
  auto document = parse_secret_toml(text, "");
  if (!document) return std::string(text);
  std::set<Line> lines;
  if (const toml::node* present = document->get(key)) {
    add_lines(*present, lines);
    if (const toml::table* fields = present->as_table())
      for (auto&& [name, value] : *fields) add_lines(value, lines);
  }
  document->erase(key);
  if (table) document->insert(key, *table);

  std::string section;
  if (table) section = printed(toml::table{{key, *table}}) + "\n";
  std::string edited = replace_lines(text, lines, section);
  // An inline table, dotted names or nested tables are not only in these lines. What counts is the values.
  auto read_back = parse_secret_toml(edited, "");
  return read_back && *read_back == *document ? edited : printed(*document) + "\n";
}

}  // namespace playfs::runtime
