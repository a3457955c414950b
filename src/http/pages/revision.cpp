// The pages of a revision and of a file in it.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "http/pages/content.h"
#include "http/pages/lists.h"
#include "http/pages/place.h"
#include "http/pages/tree.h"
#include "http/pages/views.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::http {

namespace {

constexpr std::size_t kParentsShown = 16;
constexpr std::size_t kShownCeiling = 512 * 1024;  // bytes of a file that is shown as text
constexpr std::size_t kShownLines = 5000;
constexpr std::size_t kShownLineBytes = 4000;

std::vector<Crumb> crumbs_to(const Place& place, bool into_revision) {
  const std::string& id = place.project.id.text();
  std::vector<Crumb> crumbs = {
      {"Projects", Url() / "projects"}, {title_of(place.project.raw), url_of_project(id)}, {"History", url_of_log(id)}};
  if (into_revision)
    crumbs.push_back({short_id(place.revision.id.text()), url_of_revision(id, place.revision.id.text())});
  return crumbs;
}

/// The folder that a file or folder is in.
void add_folder_crumb(Document& document, const Place& place, std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return;
  const std::string folder(path.substr(0, slash));
  document.crumbs.push_back({folder, url_of_file(place.project.id.text(), place.revision.id.text(), folder)});
}

void show_parents(Html& html, const Revision& revision) {
  html.element("dt", revision.parents.size() == 1 ? "parent" : "parents");
  auto detail = html.open("dd");
  if (revision.parents.empty()) return html.text("none: the first revision");
  auto list = html.open("ul", {{"class", "plain"}});
  const std::string& project = revision.project.text();
  for (std::size_t i = 0; i < std::min(revision.parents.size(), kParentsShown); ++i) {
    const std::string& parent = revision.parents[i].text();
    auto item = html.open("li");
    {
      auto link = html.open("a", {{Address::href, url_of_revision(project, parent)}});
      html.element("code", {{"class", "id"}}, parent);
    }
    html.text(" ");
    html.element(
        "a",
        {{Address::href, url_of_diff(project, parent, revision.id.text())}, {"aria-label", "Difference to " + parent}},
        "difference");
  }
  if (revision.parents.size() > kParentsShown)
    html.element("li", fmt::format("and {} more", revision.parents.size() - kParentsShown));
}

void show_facts(Html& html, const Revision& revision) {
  auto list = html.open("dl", {{"class", "fields"}});
  html.element("dt", "id");
  {
    auto detail = html.open("dd");
    html.element("code", {{"class", "id"}}, revision.id.text());
  }
  show_parents(html, revision);
}

void show_changes_to_parent(Html& html, Visit& visit, const Revision& revision) {
  auto section = html.open("section", {{"aria-labelledby", "changes"}});
  html.element("h2", {{"id", "changes"}}, "Changes");
  if (revision.parents.empty()) return show_nothing(html, "Everything in it is new.");
  auto parent = visit.reader.revision(revision.parents.front().text());
  if (!parent || parent->project != revision.project)
    return show_nothing(html, "Its first parent cannot be read, so there is nothing to compare it with.");
  Url difference = url_of_diff(revision.project.text(), parent->id.text(), revision.id.text());
  show_changes(html, changes_of(visit.reader, parent->manifest, revision.manifest), difference);
  auto more = html.open("p", {{"class", "more"}});
  html.link(difference, "Show the difference line by line");
}

void show_state(Html& html, const Json& state) {
  if (state.is_null()) return;
  auto section = html.open("section", {{"aria-labelledby", "state"}});
  html.element("h2", {{"id", "state"}}, "State");
  html.element("pre", {{"tabindex", "0"}}, wire::to_pretty_text(state));
}

void show_facts_of_file(Html& html, const FileEntry& entry, const Content* content, const Url& raw) {
  auto list = html.open("dl", {{"class", "fields"}});
  html.element("dt", "size");
  html.element("dd", content            ? fmt::format("{} bytes", content->bytes.size())
                     : entry.size_claim ? fmt::format("{} bytes, according to its publisher", *entry.size_claim)
                                        : "not given");
  html.element("dt", "hash");
  {
    auto detail = html.open("dd");
    html.element("code", {{"class", "id"}}, content ? content->hash.hex() : excerpt(entry.hash_claim, 200));
    if (content) html.text(content->verified ? " SHA-256, as published" : " SHA-256 of these bytes");
  }
  if (entry.mode != FileMode::regular) {
    html.element("dt", "kind");
    html.element("dd", entry.mode == FileMode::executable ? "executable" : "symbolic link; the content is its target");
  }
  html.element("dt", "stored");
  html.element("dd", entry.inline_text ? "in the manifest" : fmt::format("in {} chunks", entry.chunks.size()));
  if (content && !content->mismatch.empty()) return;
  html.element("dt", "download");
  auto detail = html.open("dd");
  html.link(raw, "Raw bytes");
}

/// The longest prefix of at most `most` bytes that does not end inside a character.
std::string_view cut_line(std::string_view line, std::size_t most) {
  if (line.size() <= most) return line;
  while (most > 0 && (static_cast<unsigned char>(line[most]) & 0xC0) == 0x80) --most;
  return line.substr(0, most);
}

void show_text(Html& html, std::string_view bytes) {
  bool cut = false;
  {
    auto block = html.open("pre", {{"class", "source"}, {"tabindex", "0"}, {"aria-label", "Content"}});
    auto code = html.open("code");
    std::size_t number = 0;
    for (; !bytes.empty() && number < kShownLines; ++number) {
      auto end = bytes.find('\n');
      std::string_view line = bytes.substr(0, end);
      bytes = end == std::string_view::npos ? std::string_view() : bytes.substr(end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      std::string_view shown = cut_line(line, kShownLineBytes);
      cut = cut || shown.size() < line.size();
      std::string id = fmt::format("L{}", number + 1);
      auto row = html.open("span", {{"class", "line"}, {"id", id}});
      html.text(shown);
      html.text("\n");
    }
  }
  if (cut || !bytes.empty())
    html.element(
        "p", {{"class", "note"}},
        "Long lines and everything after the first 5,000 lines are not shown here. The raw bytes are complete.");
}

void show_content(Html& html, const Content& content) {
  if (!content.mismatch.empty()) {
    auto warning = html.open("div", {{"class", "warning"}, {"role", "note"}});
    html.element("p", {{"class", "strong"}}, "These are not the bytes that the manifest promises.");
    html.element("p", "A mount refuses to read this file: " + content.mismatch + ".");
  }
  if (content.bytes.empty()) show_nothing(html, "The file is empty.");
  else if (content.is_text) show_text(html, content.bytes);
  else show_nothing(html, "This is not text, so it is not shown here.");
}

}  // namespace

Result<Document> revision_page(Visit& visit, const std::string& project, const std::string& id) {
  PLAYFS_TRY(Place place, find_place(visit.reader, project, id));
  const Revision& revision = place.revision;
  std::string title = headline(revision.message, "Revision " + short_id(id));
  Document document;
  document.title = title + " · " + title_of(place.project.raw);
  document.section = Section::projects;
  document.crumbs = crumbs_to(place, false);
  Html& html = document.main;
  {
    auto heading = html.open("h1", {{"dir", "auto"}});
    html.text(title);
    if (revision.id == place.project.latest_revision) html.element("span", {{"class", "badge head"}}, "head");
  }
  show_byline(html, revision.agent, format_iso8601(revision.created_at));
  if (std::string_view rest = below_headline(revision.message); !rest.empty()) show_prose(html, rest);
  show_facts(html, revision);
  show_fields(html, revision.extra, {});
  show_changes_to_parent(html, visit, revision);
  show_files(html, project, revision);
  show_state(html, revision.state);
  show_record_link(html, "revisions", id);
  return document;
}

namespace {

Result<Document> folder_page(const Place& place, const std::string& path) {
  const std::string folder = path + '/';
  if (entries_of(place.revision.manifest, folder).empty())
    return fail(ErrorCode::not_found, "there is no file " + path + " in this revision");
  Document document;
  document.title = std::string(file_name(path)) + "/ · " + title_of(place.project.raw);
  document.section = Section::projects;
  document.crumbs = crumbs_to(place, true);
  add_folder_crumb(document, place, path);
  Html& html = document.main;
  {
    auto heading = html.open("h1", {{"class", "file"}});
    show_path(html, path);
    html.text("/");
  }
  show_folder(html, place.revision, folder, "Kind",
              [&](const TreeEntry& entry) { html.text(entry.file ? kind_of(*entry.file) : "folder"); });
  return document;
}

}  // namespace

Result<Document> file_page(Visit& visit, const std::string& project, const std::string& revision,
                           const std::string& path) {
  PLAYFS_TRY(Place place, find_place(visit.reader, project, revision));
  if (!place.revision.manifest.files.contains(path)) return folder_page(place, path);
  PLAYFS_TRY(const FileEntry* entry, find_file(place, path));
  Url raw = url_of_raw(project, revision, path);

  Document document;
  document.title = std::string(file_name(path)) + " · " + title_of(place.project.raw);
  document.section = Section::projects;
  document.crumbs = crumbs_to(place, true);
  add_folder_crumb(document, place, path);
  Html& html = document.main;
  {
    auto heading = html.open("h1", {{"class", "file"}});
    show_path(html, path);
  }
  auto content = read_content(visit.reader, *entry, kShownCeiling);
  show_facts_of_file(html, *entry, content ? &*content : nullptr, raw);
  if (content) show_content(html, *content);
  else show_nothing(html, "The content is not shown: " + content.error().message + ".");
  return document;
}

}  // namespace playfs::http
