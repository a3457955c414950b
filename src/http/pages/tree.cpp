#include "http/pages/tree.h"

#include <fmt/format.h>

#include "http/pages/layout.h"
#include "http/pages/views.h"

namespace playfs::http {

namespace {

std::string size_of(const FileEntry& entry) {
  if (auto content = entry.inline_content()) return size_in_words(content->size());
  // The size of chunks is only a claim until they are read.
  return entry.size_claim ? size_in_words(*entry.size_claim) : "";
}

std::string_view kind_of(const FileEntry& entry) {
  switch (entry.mode) {
    case FileMode::regular: return entry.encoding == ContentEncoding::base64 ? "binary" : "";
    case FileMode::executable: return "executable";
    case FileMode::symlink: return "link";
  }
  return {};
}

void column(Html& html, std::string_view label, std::string_view style = {}) {
  html.element("th", {{"scope", "col"}, {"class", style}}, label);
}

void show_refused(Html& html, const Manifest& manifest) {
  if (manifest.refused.empty()) return;
  html.element("h3", "Not shown by mounts");
  auto list = html.open("ul", {{"class", "refused"}});
  for (const RefusedEntry& entry : manifest.refused) {
    auto item = html.open("li");
    html.element("code", excerpt(entry.path, 200));
    html.text(": " + entry.reason);
  }
}

}  // namespace

Url url_of_file(std::string_view project, std::string_view revision, std::string_view path) {
  return (url_of_revision(project, revision) / "files").below(path);
}

Url url_of_raw(std::string_view project, std::string_view revision, std::string_view path) {
  return (url_of_revision(project, revision) / "raw").below(path);
}

std::string change_anchor(std::size_t index) { return fmt::format("file-{}", index + 1); }

void show_path(Html& html, std::string_view path) {
  auto slash = path.rfind('/');
  auto whole = html.open("bdi", {{"class", "path"}});
  if (slash != std::string_view::npos) html.element("span", {{"class", "folder"}}, path.substr(0, slash + 1));
  html.text(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

void show_files(Html& html, const std::string& project, const Revision& revision) {
  auto section = html.open("section", {{"aria-labelledby", "files"}});
  html.element("h2", {{"id", "files"}}, "Files");
  if (revision.manifest.files.empty()) show_nothing(html, "No files.");
  else {
    auto table = html.open("table", {{"class", "files"}});
    {
      auto head = html.open("thead");
      auto row = html.open("tr");
      column(html, "Path");
      column(html, "Kind", "kind");
      column(html, "Size", "size");
    }
    auto body = html.open("tbody");
    for (const auto& [path, entry] : revision.manifest.files) {
      auto row = html.open("tr");
      {
        auto cell = html.open("td");
        auto link = html.open("a", {{Address::href, url_of_file(project, revision.id.text(), path)}});
        show_path(html, path);
      }
      html.element("td", {{"class", "kind"}}, kind_of(entry));
      html.element("td", {{"class", "size"}}, size_of(entry));
    }
  }
  show_refused(html, revision.manifest);
}

void show_changes(Html& html, const std::vector<FileChange>& changes, const Url& difference) {
  if (changes.empty()) return show_nothing(html, "No file differs.");
  auto table = html.open("table", {{"class", "changes"}});
  {
    auto head = html.open("thead");
    auto row = html.open("tr");
    column(html, "Change", "change");
    column(html, "Path");
  }
  auto body = html.open("tbody");
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const FileChange& change = changes[i];
    auto row = html.open("tr");
    {
      auto cell = html.open("td", {{"class", "change"}});
      html.element("span", {{"class", fmt::format("badge {}", name_of(change.kind))}}, name_of(change.kind));
    }
    auto cell = html.open("td");
    {
      auto link = html.open("a", {{Address::href, difference.at(change_anchor(i))}});
      show_path(html, change.path);
    }
    if (change.kind == ChangeKind::renamed) {
      html.element("span", {{"class", "note"}}, " was ");
      show_path(html, change.old_path);
      if (change.by_claim) html.element("span", {{"class", "note"}}, ", according to its publisher");
    }
  }
}

}  // namespace playfs::http
