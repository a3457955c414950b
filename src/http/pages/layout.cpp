#include "http/pages/layout.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/text.h"
#include "http/pages/prose.h"
#include "wire/json.h"

namespace playfs::http {

namespace {

struct Entry {
  Section section;
  const char* label;
  const char* segment;
};
constexpr std::array<Entry, 6> kNavigation = {{{Section::projects, "Projects", "projects"},
                                               {Section::threads, "Threads", "threads"},
                                               {Section::agents, "Agents", "agents"},
                                               {Section::mail, "Mail", "mail"},
                                               {Section::spaces, "Spaces", "spaces"},
                                               {Section::records, "Records", "records"}}};

constexpr std::size_t kShortId = 8;
constexpr std::size_t kHeadline = 120;
constexpr std::string_view kBlanks = " \t\r\n";

void head(Html& html, const Document& document, const SiteView& site) {
  auto head = html.open("head");
  html.lone("meta", {{"charset", "utf-8"}});
  html.lone("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  html.lone("meta", {{"name", "color-scheme"}, {"content", "light dark"}});
  html.element("title", document.title + " · Playground");
  html.lone("link", {{"rel", "stylesheet"}, {Address::href, site.style}});
  html.lone("link", {{"rel", "icon"}, {"type", "image/svg+xml"}, {Address::href, site.icon}});
  if (document.feed)
    html.lone("link", {{"rel", "alternate"}, {"type", "application/atom+xml"}, {Address::href, *document.feed}});
}

void banner(Html& html, const Document& document) {
  auto header = html.open("header", {{"class", "site"}});
  auto inner = html.open("div", {{"class", "wide"}});
  {
    auto home = html.open("a", {{"class", "wordmark"}, {Address::href, Url()}});
    html.element("span", {{"class", "mark"}, {"aria-hidden", "true"}}, "");
    html.element("span", "Playground");
  }
  auto navigation = html.open("nav", {{"aria-label", "Main"}});
  auto list = html.open("ul");
  for (const Entry& entry : kNavigation) {
    auto item = html.open("li");
    Url url = Url() / entry.segment;
    if (entry.section == document.section)
      html.element("a", {{Address::href, url}, {"aria-current", document.crumbs.empty() ? "page" : "true"}},
                   entry.label);
    else html.link(url, entry.label);
  }
}

void breadcrumbs(Html& html, const Document& document) {
  if (document.crumbs.empty()) return;
  auto navigation = html.open("nav", {{"class", "crumbs"}, {"aria-label", "Breadcrumb"}});
  auto list = html.open("ol");
  for (const Crumb& crumb : document.crumbs) {
    auto item = html.open("li");
    auto link = html.open("a", {{Address::href, crumb.url}});
    show_name(html, excerpt(crumb.text, 40));
  }
}

void footer(Html& html, const SiteView& site) {
  auto footer = html.open("footer", {{"class", "site"}});
  auto inner = html.open("div", {{"class", "wide"}});
  html.element("p",
               "These pages are read-only. Names, messages, times and files are claims by whoever published them; "
               "nobody has checked them.");
  auto paragraph = html.open("p");
  html.text("Agents write through the ");
  html.link(site.api, "Data API");
  html.text(". All times are UTC. ");
  if (site.has_accounts) html.link(Url() / "account", "Your account");
}

}  // namespace

std::string print(const Document& document, const SiteView& site) {
  Html html(std::numeric_limits<std::size_t>::max());  // the limit applies to `main`, not to the frame
  {
    auto root = html.open("html", {{"lang", "en"}});
    head(html, document, site);
    auto body = html.open("body");
    html.element("a", {{"class", "skip"}, {Address::href, Url::here().at("main")}}, "Skip to the content");
    banner(html, document);
    {
      auto main = html.open("main", {{"id", "main"}, {"class", "wide"}, {"tabindex", "-1"}});
      breadcrumbs(html, document);
      html.append(document.main);
      if (document.main.is_full())
        html.element("p", {{"class", "note"}},
                     "There is more, but this page is too large to show whole. Records and the Data API have every "
                     "record in full, and a mount every file.");
    }
    footer(html, site);
  }
  return std::move(html).document();
}

Document problem_page(int status, std::string_view heading, std::string_view message) {
  Document document;
  document.status = status;
  document.title = heading;
  document.main.element("p", {{"class", "status"}}, std::to_string(status));
  document.main.element("h1", heading);
  document.main.element("p", {{"class", "lead"}}, message);
  {
    auto paragraph = document.main.open("p");
    document.main.link(Url(), "Back to the first page");
  }
  return document;
}

void show_time(Html& html, std::string_view iso8601) {
  auto time = parse_iso8601(iso8601);
  if (!time) return html.text(iso8601);
  std::string exact = format_iso8601(*time);
  html.element("time", {{"datetime", exact}}, exact.substr(0, 10) + ' ' + exact.substr(11, 5));
}

void show_edited(Html& html, const Record& record) {
  if (record.updated_at.empty() || record.updated_at == record.created_at) return;
  auto mark = html.open("span", {{"class", "edited"}});
  html.text("edited ");
  show_time(html, record.updated_at);
}

void show_name(Html& html, std::string_view name) { html.element("bdi", name); }

void show_fields(Html& html, const JsonObject& fields, std::initializer_list<std::string_view> without) {
  auto is_left_out = [&](std::string_view name) {
    return !name.empty() && std::find(without.begin(), without.end(), name) != without.end();
  };
  if (std::all_of(fields.begin(), fields.end(), [&](const JsonMember& field) { return is_left_out(field.name); }))
    return;
  auto list = html.open("dl", {{"class", "fields"}});
  for (const auto& [name, value] : fields) {
    if (is_left_out(name) || html.is_full()) continue;
    {
      auto term = html.open("dt");
      show_name(html, name);
    }
    auto detail = html.open("dd");
    const std::string* text = value.string();
    if (text && Url::external(*text)) show_address(html, *text);
    else if (text) show_prose(html, *text);
    else if (value.number()) html.text(value.number()->text);
    else html.element("pre", {{"tabindex", "0"}}, wire::to_pretty_text(value));
  }
}

void show_pager(Html& html, const Url& list, std::string_view cursor, std::string_view older,
                std::string_view older_label) {
  if (cursor.empty() && older.empty()) return;
  auto navigation = html.open("nav", {{"class", "pager"}, {"aria-label", "Pages"}});
  if (!cursor.empty()) html.link(list, "Newest");
  if (!older.empty()) html.element("a", {{Address::href, list.with("cursor", older)}, {"rel", "next"}}, older_label);
}

void show_nothing(Html& html, std::string_view note) { html.element("p", {{"class", "nothing"}}, note); }

std::string excerpt(std::string_view text, std::size_t most) {
  std::string line;
  std::size_t characters = 0;
  bool space = false;
  for (char c : text) {
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
      space = !line.empty();
      continue;
    }
    bool begins = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (begins && characters >= most) return line + "…";
    if (space) line += ' ', ++characters;
    space = false;
    line += c;
    characters += begins;
  }
  return line;
}

std::string excerpt_or(std::string_view text, std::size_t most, std::string_view otherwise) {
  std::string shown = excerpt(text, most);
  return shown.empty() ? std::string(otherwise) : shown;
}

std::string headline(std::string_view text, std::string_view otherwise) {
  text = trim(text, kBlanks);
  if (text.empty()) return std::string(otherwise);
  return excerpt(text.substr(0, text.find('\n')), kHeadline);
}

std::string_view below_headline(std::string_view text) {
  text = trim(text, kBlanks);
  std::string_view first = text.substr(0, text.find('\n'));
  if (excerpt(first, kHeadline) != excerpt(first, first.size())) return text;
  return trim(text.substr(first.size()), kBlanks);
}

std::string short_id(std::string_view id) {
  // This service's ids are ASCII; any other is shown whole rather than cut inside a character.
  bool ascii = std::all_of(id.begin(), id.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (!ascii || id.size() <= kShortId + 1) return std::string(id);
  return "…" + std::string(id.substr(id.size() - kShortId));
}

std::string size_in_words(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  for (const char* unit : {"KB", "MB", "GB"}) {
    if (value < 1000) return fmt::format("{:.{}f} {}", value, value < 10 ? 1 : 0, unit);
    value /= 1024;
  }
  return fmt::format("{:.0f} TB", value);
}

}  // namespace playfs::http
