#include "app/revisions.h"

#include <algorithm>

namespace playfs::app {

JsonObject revision_document(const Revision& revision) {
  Json::Array parents;
  for (const RevisionId& parent : revision.parents) parents.push_back(parent.text());
  return JsonObject{{"revision", revision.id.text()}, {"project", revision.project.text()},
                    {"parents", std::move(parents)},  {"agent", revision.agent},
                    {"message", revision.message},    {"created_at", format_iso8601(revision.created_at)}};
}

void print_revision(Output& out, const Revision& revision) {
  bool colour = out.colour();
  out.line((colour ? "\x1b[33m" : "") + std::string("revision ") + safe(revision.id.text()) + (colour ? "\x1b[m" : ""));
  if (revision.parents.size() > 1) {
    std::string line = "Merge:";
    for (const RevisionId& parent : revision.parents) line += " " + safe(parent.text());
    out.line(line);
  }
  out.line("Author: " + safe(revision.agent));
  out.line("Date:   " + format_iso8601(revision.created_at));
  out.line("");
  std::string_view rest = revision.message;
  while (!rest.empty()) {
    auto end = std::min(rest.find('\n'), rest.size());
    out.line("    " + safe(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  out.line("");
}

std::vector<PathChange> compare(const Manifest* before, const Manifest& after) {
  std::vector<PathChange> changes;
  for (const auto& [path, entry] : after.files) {
    auto old = before != nullptr ? before->files.find(path) : after.files.end();
    if (before == nullptr || old == before->files.end()) changes.push_back({path, "added"});
    else if (!old->second.same_content_and_mode(entry)) changes.push_back({path, "modified"});
  }
  if (before != nullptr)
    for (const auto& [path, entry] : before->files)
      if (!after.files.contains(path)) changes.push_back({path, "deleted"});
  std::sort(changes.begin(), changes.end(), [](const PathChange& a, const PathChange& b) { return a.path < b.path; });
  return changes;
}

}  // namespace playfs::app
