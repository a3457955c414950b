#include "app/revisions.h"

#include <algorithm>

#include "vfs/published/history.h"

namespace playfs::app {

namespace {

constexpr const char* kYellow = "\x1b[33m";
constexpr const char* kGreen = "\x1b[32m";

std::string coloured(const Output& out, const char* code, const std::string& text) {
  return out.colour() ? code + text + "\x1b[m" : text;
}

std::string labels_text(const Output& out, const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) text += (text.empty() ? " (" : ", ") + coloured(out, kGreen, label);
  return text.empty() ? text : text + ")";
}

}  // namespace

ShownRevision as_shown(Revision revision) {
  const std::size_t all = revision.parents.size();
  revision.parents.resize(vfs::shown_parents(revision).size());
  revision.agent = vfs::shown_text(revision.agent);
  revision.message = vfs::shown_text(revision.message);
  const std::size_t more = all - revision.parents.size();
  return {std::move(revision), more};
}

JsonObject revision_document(const ShownRevision& shown) {
  const Revision& revision = shown.revision;
  Json::Array parents;
  for (const RevisionId& parent : revision.parents) parents.push_back(parent.text());
  JsonObject json{{"revision", revision.id.text()}, {"project", revision.project.text()},
                  {"parents", std::move(parents)},  {"agent", revision.agent},
                  {"message", revision.message},    {"created_at", format_iso8601(revision.created_at)}};
  if (shown.more_parents > 0) json.append("more_parents", shown.more_parents);
  return json;
}

std::vector<std::string> revision_lines(const Output& out, const ShownRevision& shown,
                                        const std::vector<std::string>& labels) {
  const Revision& revision = shown.revision;
  std::vector<std::string> lines{coloured(out, kYellow, "revision " + safe(revision.id.text())) +
                                 labels_text(out, labels)};
  if (revision.parents.size() > 1) {
    std::string line = "Merge: ";
    for (const RevisionId& parent : revision.parents) line += " " + safe(parent.text());
    if (shown.more_parents > 0) line += " and " + std::to_string(shown.more_parents) + " more";
    lines.push_back(line);
  }
  lines.push_back("Author: " + safe(revision.agent));
  lines.push_back("Date:   " + format_iso8601(revision.created_at));
  lines.emplace_back();
  std::string_view rest = revision.message;
  while (!rest.empty()) {
    auto end = std::min(rest.find('\n'), rest.size());
    lines.push_back("    " + safe(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  lines.emplace_back();
  return lines;
}

std::string revision_line(const Output& out, const Revision& revision, const std::vector<std::string>& labels) {
  return coloured(out, kYellow, safe(revision.id.text())) + labels_text(out, labels) + " " +
         safe(revision.message.substr(0, revision.message.find('\n'))) + " (" + safe(revision.agent) + ")";
}

}  // namespace playfs::app
