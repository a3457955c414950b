// Parses the HTML that pages write, strictly: every tag closed in order, every attribute quoted, no scripts.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace playfs::http {

struct Markup {
  std::string outline;             ///< tags and attribute names in order, without any text
  std::string text;                ///< all text, unescaped
  std::vector<std::string> links;  ///< values of href
  std::string problem;             ///< what is wrong; empty if nothing

  static Markup of(std::string_view html) {
    Markup markup;
    markup.read(html);
    return markup;
  }

 private:
  static constexpr std::string_view kLone[] = {"meta", "link", "br", "col", "input"};
  static constexpr std::string_view kRefused[] = {"script", "style", "iframe", "object", "embed", "base"};

  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  }

  static std::string unescaped(std::string_view text) {
    std::string out(text);
    for (auto [entity, character] :
         {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}})
      for (std::size_t at = 0; (at = out.find(entity, at)) != std::string::npos; at += 1)
        out.replace(at, std::string_view(entity).size(), character);
    return out;
  }

  void read(std::string_view html) {
    constexpr std::string_view kDoctype = "<!doctype html>\n";
    if (!html.starts_with(kDoctype)) problem = "no doctype";
    else html.remove_prefix(kDoctype.size());
    std::vector<std::string> open;
    while (!html.empty() && problem.empty()) {
      auto start = html.find('<');
      std::string_view words = html.substr(0, start);
      if (words.find('>') != std::string_view::npos || words.find('"') != std::string_view::npos)
        problem = "not escaped: " + std::string(words);
      text += unescaped(words);
      if (start == std::string_view::npos) break;
      html.remove_prefix(start + 1);
      if (html.starts_with('/')) read_end(html, open);
      else read_start(html, open);
    }
    if (problem.empty() && !open.empty()) problem = "never closed: " + open.back();
  }

  std::string read_name(std::string_view& html) {
    auto end = std::find_if_not(html.begin(), html.end(), is_name);
    std::string name(html.begin(), end);
    html.remove_prefix(name.size());
    return name;
  }

  void read_end(std::string_view& html, std::vector<std::string>& open) {
    html.remove_prefix(1);
    std::string name = read_name(html);
    if (open.empty() || open.back() != name) problem = "closed out of order: " + name;
    else open.pop_back();
    if (!html.starts_with('>')) problem = "an end tag with more than its name: " + name;
    else html.remove_prefix(1);
    outline += "/" + name + " ";
  }

  void read_start(std::string_view& html, std::vector<std::string>& open) {
    std::string name = read_name(html);
    if (name.empty()) problem = "a < that begins no tag";
    if (std::find(std::begin(kRefused), std::end(kRefused), name) != std::end(kRefused)) problem = "an element " + name;
    outline += name;
    while (html.starts_with(' ') && problem.empty()) read_attribute(html);
    if (!html.starts_with('>')) problem = "a tag that does not end: " + name;
    else html.remove_prefix(1);
    outline += ' ';
    if (std::find(std::begin(kLone), std::end(kLone), name) == std::end(kLone)) open.push_back(name);
  }

  void read_attribute(std::string_view& html) {
    html.remove_prefix(1);
    std::string name = read_name(html);
    if (name.starts_with("on") || name == "style" || name == "src") problem = "an attribute " + name;
    if (!html.starts_with("=\"")) {
      problem = "an attribute without a quoted value: " + name;
      return;
    }
    html.remove_prefix(2);
    auto end = html.find('"');
    std::string_view value = html.substr(0, end);
    if (end == std::string_view::npos || value.find_first_of("<>'") != std::string_view::npos)
      problem = "a value not escaped: " + name;
    if (end == std::string_view::npos) return;
    if (name == "href") links.push_back(unescaped(value));
    html.remove_prefix(end + 1);
    outline += "." + name;
  }
};

}  // namespace playfs::http
