// The page of a difference between two revisions of a project, by file and line.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "compare/text_diff.h"
#include "http/pages/content.h"
#include "http/pages/lists.h"
#include "http/pages/tree.h"
#include "http/pages/views.h"

namespace playfs::http {

namespace {

using compare::ChangeKind;
using compare::FileChange;

constexpr std::size_t kFileCeiling = 256 * 1024;  // bytes of a text that is compared
constexpr std::size_t kTotalCeiling = 2 << 20;    // bytes compared for one page
constexpr std::size_t kLinesCompared = 40'000;    // of both sides, for one page
constexpr std::size_t kLinesOfFile = 2000;
constexpr std::size_t kLinesOfPage = 6000;
constexpr std::size_t kLineBytes = 2000;
// Lines take no more of a page than this, so that each file gets its section, if only with a link.
constexpr std::size_t kHtmlOfLines = Html::kMostBytes / 2;

/// What the page may still compare and show.
struct Budget {
  std::size_t bytes = kTotalCeiling;
  std::size_t compared = kLinesCompared;
  std::size_t lines = kLinesOfPage;
  std::size_t html = kHtmlOfLines;

  [[nodiscard]] bool is_whole() const { return bytes == kTotalCeiling; }
};

struct Sides {
  Revision before;
  Revision after;

  [[nodiscard]] std::string range() const { return before.id.text() + ".." + after.id.text(); }
};

Result<Revision> find_side(Visit& visit, const std::string& project, const std::string& id) {
  PLAYFS_TRY(Revision revision, visit.reader.revision(id));
  if (revision.project.text() != project)
    return fail(ErrorCode::not_found, "revision " + id + " does not belong to this project");
  return revision;
}

Result<Sides> find_sides(Visit& visit, const std::string& project, const std::string& range) {
  auto dots = range.find("..");
  if (dots == std::string::npos || dots == 0 || dots + 2 == range.size())
    return fail(ErrorCode::not_found, "expected A..B, two revision ids");
  Sides sides;
  PLAYFS_TRY(sides.before, find_side(visit, project, range.substr(0, dots)));
  PLAYFS_TRY(sides.after, find_side(visit, project, range.substr(dots + 2)));
  return sides;
}

Result<std::string> text_of(Reader& reader, const FileEntry* entry) {
  if (!entry) return std::string();
  PLAYFS_TRY(Content content, read_content(reader, *entry, kFileCeiling));
  if (!content.mismatch.empty()) return fail(ErrorCode::corrupt, content.mismatch);
  if (!content.is_text) return fail(ErrorCode::not_supported, "it is not text");
  return std::move(content.bytes);
}

void show_number(Html& html, int number) {
  if (number > 0) html.element("td", {{"class", "number"}, {"data-number", std::to_string(number)}}, "");
  else html.element("td", {{"class", "number"}}, "");
}

void show_line(Html& html, const compare::DiffLine& line) {
  auto row = html.open("tr", {{"class", line.sign == '+' ? "added" : line.sign == '-' ? "removed" : "same"}});
  show_number(html, line.old_number);
  show_number(html, line.new_number);
  html.element("td", {{"class", "sign"}}, line.sign == '-' ? "−" : line.sign == '+' ? "+" : "");
  auto text = html.open("td", {{"class", "text"}});
  std::string_view shown = line.text;
  if (shown.size() > kLineBytes) {
    std::size_t end = kLineBytes;
    while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xC0) == 0x80) --end;
    shown = shown.substr(0, end);
  }
  html.text(shown);
  if (shown.size() < line.text.size()) html.element("span", {{"class", "note"}}, "… (a long line, not shown whole)");
  if (!line.ends_in_break) html.element("span", {{"class", "note"}}, " (no line break at the end)");
}

void show_hunks(Html& html, const compare::TextDiff& diff, const std::string& label) {
  auto table = html.open("table", {{"class", "difference"}});
  html.element("caption", {{"class", "hidden"}}, "Lines of " + label);
  {
    auto columns = html.open("colgroup");
    for (std::string_view name : {"number", "number", "sign", "text"}) html.lone("col", {{"class", name}});
  }
  {
    auto head = html.open("thead", {{"class", "hidden"}});
    auto row = html.open("tr");
    for (std::string_view name : {"Old line", "New line", "Change", "Text"})
      html.element("th", {{"scope", "col"}}, name);
  }
  for (const compare::DiffHunk& hunk : diff.hunks) {
    auto body = html.open("tbody");
    for (const compare::DiffLine& line : hunk.lines) show_line(html, line);
  }
}

/// Links to the whole file, where its lines are not shown.
void show_elsewhere(Html& html, const Sides& sides, const FileChange& change) {
  auto more = html.open("p", {{"class", "more"}});
  const std::string& project = sides.after.project.text();
  if (change.before) html.link(url_of_raw(project, sides.before.id.text(), change.old_path), "The file before");
  if (change.before && change.after) html.text(" · ");
  if (change.after) html.link(url_of_raw(project, sides.after.id.text(), change.path), "The file after");
  html.text(" · in a mount: ");
  html.element("code", "playfs diff " + sides.range());
}

void show_link_to_lines(Html& html, const Sides& sides, const FileChange& change) {
  auto more = html.open("p", {{"class", "more"}});
  html.link(
      url_of_diff(sides.after.project.text(), sides.before.id.text(), sides.after.id.text()).with("file", change.path),
      "Show this file's lines");
}

Result<compare::TextDiff> compare_texts(Reader& reader, const FileChange& change, Budget& budget) {
  PLAYFS_TRY(std::string before, text_of(reader, change.before));
  PLAYFS_TRY(std::string after, text_of(reader, change.after));
  budget.bytes -= std::min(budget.bytes, before.size() + after.size());
  PLAYFS_TRY(auto diff, compare::diff_texts(before, after, {budget.compared, std::min(kLinesOfFile, budget.lines)}));
  budget.compared -= diff.compared;
  for (const compare::DiffHunk& hunk : diff.hunks) budget.lines -= std::min(budget.lines, hunk.lines.size());
  return diff;
}

void show_text_change(Html& html, Reader& reader, const Sides& sides, const FileChange& change, Budget& budget) {
  const bool by_itself = budget.is_whole();
  auto diff = compare_texts(reader, change, budget);
  if (!diff) {
    const ErrorCode code = diff.error().code;
    const bool too_large = code == ErrorCode::file_too_big || code == ErrorCode::quota_exceeded;
    // On a page of its own it gets a larger budget.
    if (too_large && !by_itself) return show_link_to_lines(html, sides, change);
    show_nothing(html, "Its lines are not shown: " + diff.error().message + ".");
    if (too_large) show_elsewhere(html, sides, change);
    return;
  }
  if (diff->hunks.empty()) return show_nothing(html, "The same bytes.");
  Html lines(budget.html);
  show_hunks(lines, *diff, change.path);
  budget.html -= std::min(budget.html, lines.fragment().size());
  html.append(lines);
  if (!diff->cut && !lines.is_full()) return;
  html.element("p", {{"class", "note"}}, "Too many lines differ to show them all.");
  show_elsewhere(html, sides, change);
}

std::string_view word_of(FileMode mode) {
  switch (mode) {
    case FileMode::regular: return "a plain file";
    case FileMode::executable: return "an executable";
    case FileMode::symlink: return "a symbolic link";
  }
  return {};
}

void show_change(Html& html, Visit& visit, const Sides& sides, const FileChange& change, std::size_t index,
                 Budget& budget) {
  auto section = html.open("section", {{"class", "change"}, {"id", change_anchor(index)}});
  {
    auto heading = html.open("h2");
    html.element("span", {{"class", fmt::format("badge {}", name_of(change.kind))}}, name_of(change.kind));
    const Revision& side = change.after ? sides.after : sides.before;
    auto link = html.open("a", {{Address::href, url_of_file(side.project.text(), side.id.text(), change.path)}});
    show_path(html, change.path);
  }
  if (change.kind == ChangeKind::renamed) {
    auto line = html.open("p", {{"class", "note"}});
    if (change.similarity < 100) html.text(fmt::format("{} % the same as ", change.similarity));
    else html.text(change.by_claim ? "By its publisher's hash, the same content as " : "The same content as ");
    show_path(html, change.old_path);
    html.text(" had.");
  }
  if (change.before && change.after && change.before->mode != change.after->mode)
    html.element("p", {{"class", "note"}},
                 fmt::format("Was {}, is now {}.", word_of(change.before->mode), word_of(change.after->mode)));
  if (change.kind == ChangeKind::mode_only) return;
  if (change.kind == ChangeKind::renamed && change.similarity == 100) return;
  if (budget.bytes > 0 && budget.lines > 0 && budget.html > 0)
    return show_text_change(html, visit.reader, sides, change, budget);
  show_link_to_lines(html, sides, change);
}

void show_side(Html& html, std::string_view label, const Revision& revision) {
  html.element("dt", label);
  auto detail = html.open("dd");
  html.link(url_of_revision(revision.project.text(), revision.id.text()), headline(revision.message, "(no message)"));
  show_byline(html, revision.agent, format_iso8601(revision.created_at));
}

}  // namespace

Result<Document> diff_page(Visit& visit, const std::string& project_id, const std::string& range) {
  PLAYFS_TRY(Project project, visit.reader.project(project_id));
  PLAYFS_TRY(Sides sides, find_sides(visit, project_id, range));
  Document document;
  document.title = "Difference in " + title_of(project.raw);
  document.section = Section::projects;
  document.crumbs = {{"Projects", Url() / "projects"},
                     {title_of(project.raw), url_of_project(project_id)},
                     {"History", url_of_log(project_id)}};
  Html& html = document.main;
  html.element("h1", "Difference");
  {
    auto list = html.open("dl", {{"class", "fields"}});
    show_side(html, "from", sides.before);
    show_side(html, "to", sides.after);
  }
  const Changes changes = changes_of(visit.reader, sides.before.manifest, sides.after.manifest);
  const std::string only = visit.parameter("file");
  show_changes(html, changes,
               only.empty() ? Url::here() : url_of_diff(project_id, sides.before.id.text(), sides.after.id.text()));
  Budget budget;
  for (std::size_t i = 0; i < changes.files.size(); ++i)
    if (only.empty() || changes.files[i].path == only) show_change(html, visit, sides, changes.files[i], i, budget);
  return document;
}

}  // namespace playfs::http
