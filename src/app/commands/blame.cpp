// playfs blame: shows which revision last changed each line of a file.
#include "app/blame.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/pager.h"
#include "app/path_in_work.h"
#include "app/work_tree_access.h"

namespace playfs::app {

namespace {

constexpr const char* kNotPublished = "not published yet";

UnpublishedFile unpublished(WorkTreeAccess& tree, const JsonObject& status) {
  UnpublishedFile file{tree.work(), {}};
  if (std::string base = text_of(status, "base"); !base.empty()) file.parents.emplace_back(std::move(base));
  for (const std::string& each : revisions_merged(status)) file.parents.emplace_back(each);
  return file;
}

JsonObject as_json(const BlamedLine& line, std::size_t number) {
  const Revision* revision = line.revision ? &line.revision->revision : nullptr;
  return {{"line", number},
          {"revision", revision ? Json(revision->id.text()) : Json()},
          {"agent", revision ? Json(revision->agent) : Json()},
          {"created_at", revision ? Json(format_iso8601(revision->created_at)) : Json()},
          {"path", line.path},
          {"text", line.text}};
}

void print(CommandContext& context, const std::vector<BlamedLine>& lines, const std::string& path) {
  std::size_t ids = 0, agents = 0, paths = 0;
  bool has_moved = false;
  for (const BlamedLine& line : lines) {
    has_moved = has_moved || line.path != path;
    paths = std::max(paths, safe(line.path).size());
    const Revision* revision = line.revision ? &line.revision->revision : nullptr;
    ids = std::max(ids, revision ? safe(revision->id.text()).size() : 0);
    agents = std::max(agents, revision ? safe(revision->agent).size() : std::string_view(kNotPublished).size());
  }
  const std::size_t digits = std::to_string(lines.size()).size();
  std::size_t number = 0;
  for (const BlamedLine& line : lines) {
    if (!context.io.out) return;  // the reader is gone
    ++number;
    const Revision* revision = line.revision ? &line.revision->revision : nullptr;
    const std::string id = revision ? safe(revision->id.text()) : std::string();
    const std::string agent = revision ? safe(revision->agent) : kNotPublished;
    const std::string day = revision ? format_iso8601(revision->created_at).substr(0, 10) : std::string(10, ' ');
    const std::string where = has_moved ? fmt::format(" {:<{}}", safe(line.path), paths) : std::string();
    context.out.line(fmt::format("{:<{}}{} ({:<{}} {} {:>{}}) {}", id, ids, where, agent, agents, day, number, digits,
                                 safe(line.text)));
  }
}

}  // namespace

Result<ExitCode> blame(CommandContext& context, const BlameArguments& arguments) {
  PLAYFS_TRY(const PathInWork at, path_in_work(context, arguments.path, "blame"));
  PLAYFS_TRY(auto tree, open_work_tree(context, at.place, "blame"));
  PLAYFS_TRY(const JsonObject status, tree->status_document());
  PLAYFS_TRY(auto revisions, tree->revisions(0));
  Blame blame(*revisions, [&](const std::string& revision) { return tree->tree(revision); });
  std::vector<BlamedLine> lines;
  if (arguments.revision) {
    PLAYFS_TRY(const RevisionId revision, revision_of(*tree, status, *arguments.revision));
    PLAYFS_TRY(lines, blame.lines_of(at.path, revision));
  } else {
    PLAYFS_TRY(lines, blame.lines_of(at.path, unpublished(*tree, status)));
  }
  Pager pager(context, arguments.pager);
  if (context.out.json()) {
    for (std::size_t i = 0; i < lines.size() && context.io.out; ++i) context.out.stream_item(as_json(lines[i], i + 1));
  } else {
    print(context, lines, at.path);
  }
  if (blame.left_parents_out())
    context.out.note("Some revisions have too many parents to look at: a line may be older than it says here.");
  return ExitCode::done;
}

}  // namespace playfs::app
