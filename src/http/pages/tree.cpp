#include "http/pages/tree.h"

#include <algorithm>

#include <fmt/format.h>

#include "http/pages/content.h"
#include "http/pages/layout.h"
#include "http/pages/views.h"

namespace playfs::http {

namespace {

// The limit on what is read to find the renames of one page. Counted as records, so that padding and undecodable ones
// count too.
constexpr std::size_t kRenameRecords = 500;
constexpr std::size_t kRenameBytes = 1280 << 10;

/// Fails if there is too much to read.
Result<std::optional<std::string>> read_to_compare(Reader& reader, const FileEntry& entry) {
  // A claimed size may count characters, of which there are no more than bytes.
  if (entry.size_claim.value_or(0) > compare::kLargestSimilar) return std::nullopt;
  auto content = read_content(reader, entry, compare::kLargestSimilar);
  if (!content &&
      (content.error().code == ErrorCode::file_too_big || content.error().code == ErrorCode::quota_exceeded))
    return fail(std::move(content).error());
  if (!content || !content->mismatch.empty()) return std::nullopt;
  return std::move(content->bytes);
}

std::string size_of(const FileEntry& entry) {
  if (auto content = entry.inline_content()) return size_in_words(content->size());
  // The size of chunks is only a claim until they are read.
  return entry.size_claim ? size_in_words(*entry.size_claim) : "";
}

void column(Html& html, std::string_view label, std::string_view style = {}) {
  html.element("th", {{"scope", "col"}, {"class", style}}, label);
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

std::string_view kind_of(const FileEntry& entry) {
  switch (entry.mode) {
    case FileMode::regular: return entry.encoding == ContentEncoding::base64 ? "binary" : "";
    case FileMode::executable: return "executable";
    case FileMode::symlink: return "link";
  }
  return {};
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

std::vector<TreeEntry> entries_of(const Manifest& manifest, std::string_view folder) {
  std::vector<TreeEntry> entries;
  for (auto file = manifest.files.lower_bound(folder); file != manifest.files.end(); ++file) {
    std::string_view path = file->first;
    if (!path.starts_with(folder)) break;
    path.remove_prefix(folder.size());
    const auto slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    if (slash == std::string_view::npos) entries.push_back({std::string(name), &file->second, 0});
    else if (!entries.empty() && !entries.back().file && entries.back().name == name) ++entries.back().files;
    else entries.push_back({std::string(name), nullptr, 1});
  }
  std::stable_partition(entries.begin(), entries.end(), [](const TreeEntry& entry) { return !entry.file; });
  return entries;
}

void show_folder(Html& html, const Revision& revision, std::string_view folder, std::string_view further,
                 const std::function<void(const TreeEntry&)>& show_cell) {
  const std::vector<TreeEntry> entries = entries_of(revision.manifest, folder);
  if (entries.empty()) return show_nothing(html, "No files.");
  auto table = html.open("table", {{"class", "files listing"}});
  {
    auto head = html.open("thead");
    auto row = html.open("tr");
    column(html, "Name");
    column(html, further);
    column(html, "Size", "size");
  }
  auto body = html.open("tbody");
  for (const TreeEntry& entry : entries) {
    auto row = html.open("tr");
    {
      auto cell = html.open("td");
      const std::string path = std::string(folder) + entry.name;
      auto link = html.open("a", {{Address::href, url_of_file(revision.project.text(), revision.id.text(), path)}});
      auto name = html.open("bdi", {{"class", "path"}});
      html.text(entry.file ? entry.name : entry.name + '/');
    }
    {
      auto cell = html.open("td");
      show_cell(entry);
    }
    html.element(
        "td", {{"class", "size"}},
        entry.file ? size_of(*entry.file) : fmt::format("{} file{}", entry.files, entry.files == 1 ? "" : "s"));
  }
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

Changes changes_of(Reader& reader, const Manifest& before, const Manifest& after) {
  Changes changes{compare::changes_between(before, after)};
  const Reader::Part part(reader, kRenameRecords, kRenameBytes);
  changes.has_all_renames = compare::pair_renames(changes.files, [&](const compare::FileChange& change) {
                              return read_to_compare(reader, change.after ? *change.after : *change.before);
                            }).value_or(false);
  return changes;
}

void show_changes(Html& html, const Changes& changes, const Url& difference) {
  if (changes.files.empty()) return show_nothing(html, "No file differs.");
  if (!changes.has_all_renames)
    html.element("p", {{"class", "note"}},
                 "Too much was added and removed to look for files that were both renamed and edited.");
  auto table = html.open("table", {{"class", "changes"}});
  {
    auto head = html.open("thead");
    auto row = html.open("tr");
    column(html, "Change", "change");
    column(html, "Path");
  }
  auto body = html.open("tbody");
  for (std::size_t i = 0; i < changes.files.size(); ++i) {
    const compare::FileChange& change = changes.files[i];
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
    if (change.kind == compare::ChangeKind::renamed) {
      html.element("span", {{"class", "note"}}, " was ");
      show_path(html, change.old_path);
      if (change.similarity < 100)
        html.element("span", {{"class", "note"}}, fmt::format(", {} % the same", change.similarity));
      if (change.by_claim) html.element("span", {{"class", "note"}}, ", according to its publisher");
    }
  }
}

}  // namespace playfs::http
