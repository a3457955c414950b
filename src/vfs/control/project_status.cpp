// Renders `status` and `status.json` of a project.
#include <algorithm>

#include "base/shell.h"
#include "base/text.h"
#include "model/instructions.h"
#include "publish/conflicts.h"
#include "vfs/control/control_text.h"

namespace playfs::vfs {
namespace {

/// How many branches `status` lists.
constexpr std::size_t kMostNamed = 5;

Json id_array(const std::vector<RevisionId>& ids) {
  Json::Array array;
  for (const RevisionId& id : ids) array.emplace_back(id.text());
  return array;
}

Json revision_json(const content::RevisionSummary& revision) {
  return JsonObject{{"revision", revision.id.text()},
                    {"agent", revision.agent},
                    {"message", revision.message},
                    {"created_at", format_iso8601(revision.created_at)}};
}

Json checkpoint_json(const stage::Checkpoint& checkpoint) {
  const bool is_sound = !checkpoint.damage.has_value();
  return JsonObject{{"id", checkpoint.id},
                    {"created_at", is_sound ? Json(format_iso8601(checkpoint.made)) : Json()},
                    {"message", checkpoint.message},
                    {"paths", checkpoint.paths},
                    {"bytes", checkpoint.bytes},
                    {"base", checkpoint.base.text()},
                    {"damage", is_sound ? Json() : Json(checkpoint.damage->message)}};
}

Json reading_json(const std::optional<publish::LogReading>& reading) {
  if (!reading) return {};
  return JsonObject{{"records", reading->records},
                    {"back_to", format_iso8601(reading->back_to)},
                    {"down_to", format_iso8601(reading->down_to)}};
}

Json publication_json(const ProjectStatus& status) {
  const publish::Progress progress = status.progress.value_or(publish::Progress());
  JsonObject json{{"phase", Json(name_of(progress.phase))},
                  {"chunks_done", std::int64_t{progress.so_far.chunks_done}},
                  {"chunks_total", std::int64_t{progress.so_far.chunks_total}},
                  {"bytes_done", progress.bytes_done},
                  {"bytes_total", progress.bytes_total},
                  {"seconds_left", progress.seconds_left ? Json(std::int64_t{*progress.seconds_left}) : Json()},
                  {"retry_after_s", std::int64_t{progress.so_far.retry_after_s}},
                  {"reading", reading_json(progress.reading)},
                  {"waiting_for", progress.last_error ? error_json(*progress.last_error) : Json()}};
  Json::Array queue;
  for (const auto& each : status.queue)
    queue.push_back(JsonObject{{"tx", each.tx}, {"agent", each.agent}, {"message", each.message}});
  json.set("queue", std::move(queue));
  if (!status.last) {
    json.set("last", nullptr);
  } else if (*status.last) {
    json.set("last", commit_members(**status.last));
  } else {
    json.set("last", JsonObject{{"error", error_json(status.last->error())}});
  }
  return json;
}

bool is_publishing(const ProjectStatus& status) {
  return !status.queue.empty() || (status.progress && status.progress->phase != Phase::idle);
}

std::size_t staged_count(const ProjectStatus& status) {
  std::size_t count = status.state_staged ? 1 : 0;
  for (const stage::Change& change : status.changes) count += change.pending ? 0 : 1;
  return count;
}

/// The command to suggest next; "" if nothing is to be done.
std::string next_command(const ProjectStatus& status) {
  if (status.no_work_tree || status.gone) return {};
  if (!status.lost_files.empty()) return "rewrite " + status.lost_files.front().path + ", or playfs discard it";
  if (!status.conflicts.empty()) return "playfs diff, edit the conflicts, then playfs commit -m MESSAGE";
  if (is_publishing(status)) return {};
  if (status.branch && status.merging.empty()) return "playfs update";
  if (!status.merging.empty() || staged_count(status) > 0) return "playfs commit -m MESSAGE";
  return {};
}

void append_section(std::string& text, std::string_view heading, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  text.append("\n").append(heading).append("\n");
  for (const std::string& line : lines) text.append("  ").append(line).append("\n");
}

std::string padded(std::string_view word, std::size_t width) {
  std::string text(word);
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string first_line(const std::string& text) { return escape_for_terminal(text.substr(0, text.find('\n'))); }

std::string headline(const content::RevisionSummary& revision) {
  return escape_for_terminal(revision.agent) + ", " + format_iso8601(revision.created_at).substr(0, 16) +
         "Z: " + first_line(revision.message);
}

std::string place_text(const ProjectStatus& status) {
  const std::string base = escape_for_terminal(status.base.text());
  const std::string head = escape_for_terminal(status.head.text());
  std::string text;
  if (status.gone) {
    text =
        "The service no longer has this project: it was deleted, or the service went back to an older state.\n  Your "
        "staged changes are kept: copy work/ elsewhere while its base is still in the cache\n";
    if (!status.base.empty()) text += "Based on " + base + "\n";
  } else if (status.base.empty() && status.head.empty()) {
    text = "Nothing has been published yet\n";
  } else if (status.base == status.head) {
    text = "At head, revision " + head + "\n";
  } else if (status.branch) {
    text = "On branch " + base + ", which is not merged into head; head is " + head + "\n";
  } else {
    text = "Based on " + (base.empty() ? "nothing" : base) + "; head is " + head;
    if (!is_publishing(status)) text += " (use \"playfs update\" to bring it in)";
    text += "\n";
  }
  if (status.lost)
    text += "The service went back to an older state and lost revision " + escape_for_terminal(status.lost->text()) +
            ", the base of this work tree.\n  Its content is kept here as staged changes: \"playfs commit\" publishes "
            "them again, \"playfs discard\" drops them\n";
  if (status.latest) text += "  " + headline(*status.latest) + "\n";
  for (const auto& revision : status.merging)
    text += "Merging " + escape_for_terminal(revision.text()) + "; the next commit completes the merge\n";
  if (status.no_work_tree) {
    text += "Not writable: " + escape_for_terminal(status.no_work_tree->message) + "\n";
    if (!status.no_work_tree->hint.empty()) text += "  " + escape_for_terminal(status.no_work_tree->hint) + "\n";
  }
  if (!status.health.reachable)
    text += "The service does not answer: " + escape_for_terminal(status.health.last_error) + "\n";
  return text;
}

std::string progress_text(const ProjectStatus& status) {
  if (!is_publishing(status)) {
    if (!status.last || *status.last) return {};
    return "\nThe last commit failed: " + escape_for_terminal(status.last->error().message) + "\n";
  }
  const publish::Progress progress = status.progress.value_or(publish::Progress());
  std::string text = "\nPublication: ";
  // idle between two steps
  text += progress.phase == Phase::idle ? "starting" : std::string(name_of(progress.phase));
  if (progress.so_far.chunks_total > 0)
    text += ", " + std::to_string(progress.so_far.chunks_done) + " of " + std::to_string(progress.so_far.chunks_total) +
            " chunks uploaded";
  if (progress.bytes_total > 0)
    text += " (" + size_words(progress.bytes_done) + " of " + size_words(progress.bytes_total) + ")";
  if (progress.seconds_left) text += ", about " + duration_words(*progress.seconds_left) + " left";
  text += "\n";
  if (progress.reading)
    text += "  reading what others have published: " + std::to_string(progress.reading->records) +
            " revisions of all projects so far, back to " + format_iso8601(progress.reading->back_to) + ", stops at " +
            format_iso8601(progress.reading->down_to) + "\n";
  if (progress.last_error) {
    text += "  waiting: " + escape_for_terminal(progress.last_error->message);
    if (progress.so_far.retry_after_s > 0) text += "; retrying in " + duration_words(progress.so_far.retry_after_s);
    text += "\n";
    if (!progress.last_error->hint.empty()) text += "  " + escape_for_terminal(progress.last_error->hint) + "\n";
  }
  for (std::size_t i = 0; i < status.queue.size(); ++i)
    text += (i == 0 ? "  commit: " : "  queued behind it, to publish what is staged by then: ") +
            first_line(status.queue[i].message) + "\n";
  if (progress.phase < Phase::posting) text += "  (use \"playfs commit --cancel\" to take it back until it is sent)\n";
  return text;
}

/// "AGENTS.md, src/CLAUDE.md, …"
std::string some_of(const std::vector<std::string>& paths) {
  std::string text;
  for (std::size_t i = 0; i < std::min(paths.size(), kMostNamed); ++i)
    text += (i > 0 ? ", " : "") + escape_for_terminal(paths[i]);
  return paths.size() > kMostNamed ? text + ", …" : text;
}

std::string files_words(std::size_t count, const char* one, const char* many) {
  return count == 1 ? std::string("1 file ") + one : std::to_string(count) + " files " + many;
}

/// What a project brings that tells agents what to do.
std::string instructions_text(const ProjectStatus& status) {
  std::string text;
  if (!status.hidden.empty())
    text += "\n" + files_words(status.hidden.size(), "is hidden: it gives", "are hidden: they give") +
            " instructions to agents (" + some_of(status.hidden) + ")\n  To read one: playfs cat " +
            escape_for_terminal(shell_word(status.project.text())) + " " +
            escape_for_terminal(shell_word(status.hidden.front())) +
            "\n  To show them: mount with \"-o instructions=show\", or clone with --show-instructions\n";
  if (!status.instructions_of_others.empty())
    text += "\n" + files_words(status.instructions_of_others.size(), "by others gives", "by others give") +
            " instructions to agents (" + some_of(status.instructions_of_others) +
            ")\n  Agents that start here follow them. To hide them: mount with \"-o instructions=hide\", or clone with "
            "--hide-instructions\n";
  return text;
}

}  // namespace

Json status_json(const ProjectStatus& status) {
  Json::Array staged, lost_files, refused, hidden, instructions, unpublished, conflicts, merging, branches, checkpoints;
  for (const stage::Change& change : status.changes) {
    staged.push_back(
        JsonObject{{"path", change.path}, {"change", Json(name_of(change.kind))}, {"pending", change.pending}});
  }
  for (const RefusedEntry& entry : status.refused) {
    refused.push_back(JsonObject{{"path", entry.path}, {"reason", entry.reason}});
  }
  for (const std::string& path : status.hidden)
    refused.push_back(JsonObject{{"path", path}, {"reason", std::string(kWhyNoInstructions)}});
  for (const std::string& path : status.hidden) hidden.emplace_back(path);
  for (const std::string& path : status.instructions_of_others) instructions.emplace_back(path);
  for (const auto& file : status.lost_files)
    lost_files.push_back(JsonObject{{"path", file.path}, {"reason", file.reason}});
  for (const std::string& path : status.unpublished) unpublished.emplace_back(path);
  for (const auto& conflict : status.conflicts)
    conflicts.push_back(JsonObject{{"path", publish::shown_path(conflict)},
                                   {"file", publish::is_of_file(conflict)},
                                   {"reason", conflict.reason},
                                   {"markers", conflict.has_markers}});
  for (const auto& branch : status.branches) branches.push_back(revision_json(*branch));
  for (const auto& checkpoint : status.checkpoints) checkpoints.push_back(checkpoint_json(checkpoint));
  return JsonObject{{"schema_version", kSchemaVersion},
                    {"project", status.project.text()},
                    {"name", status.name},
                    {"base", status.base.text()},
                    {"head", status.head.text()},
                    {"gone", status.gone},
                    {"head_refused", status.head_refused ? Json(status.head_refused->message) : Json()},
                    {"head_age_s", status.head_age ? Json(std::int64_t{status.head_age->count()}) : Json()},
                    {"latest", status.latest ? revision_json(*status.latest) : Json()},
                    {"lost", status.lost ? Json(status.lost->text()) : Json()},
                    {"branch", status.branch},
                    {"staged", std::move(staged)},
                    {"state_staged", status.state_staged},
                    {"lost_files", std::move(lost_files)},
                    {"conflicts", std::move(conflicts)},
                    {"merging", id_array(status.merging)},
                    {"branches", std::move(branches)},
                    {"refused", std::move(refused)},
                    {"hidden", std::move(hidden)},
                    {"instructions_of_others", std::move(instructions)},
                    {"unpublished", std::move(unpublished)},
                    {"checkpoints", std::move(checkpoints)},
                    {"publication", publication_json(status)},
                    {"next", next_command(status)},
                    {"writable", !status.no_work_tree.has_value()},
                    {"reason", status.no_work_tree ? Json(status.no_work_tree->message) : Json()},
                    {"health", health_json(status.health)}};
}

std::string status_text(const ProjectStatus& status) {
  std::string text = "Project " + escape_for_terminal(status.name.empty() ? status.project.text() : status.name);
  if (!status.name.empty()) text += " (" + escape_for_terminal(status.project.text()) + ")";
  text += "\n" + place_text(status);
  if (status.head_age)
    text += "The service has not answered; head is as of " +
            duration_words(static_cast<std::uint64_t>(status.head_age->count())) + " ago\n";
  if (status.head_refused)
    text += "Its latest revision cannot be shown: " + escape_for_terminal(status.head_refused->message) + "\n";
  std::vector<std::string> staged, pending, lost_files, unpublished, refused, conflicts, branches;
  for (const stage::Change& change : status.changes) {
    (change.pending ? pending : staged).push_back(padded(name_of(change.kind), 10) + escape_for_terminal(change.path));
  }
  if (status.state_staged) staged.push_back(padded("modified", 10) + "(the project's state)");
  for (const auto& file : status.lost_files)
    lost_files.push_back(escape_for_terminal(file.path) + ": " + escape_for_terminal(file.reason));
  for (const std::string& path : status.unpublished) unpublished.push_back(escape_for_terminal(path));
  for (const RefusedEntry& entry : status.refused) {
    refused.push_back(escape_for_terminal(entry.path) + ": " + escape_for_terminal(entry.reason));
  }
  for (const auto& conflict : status.conflicts)
    conflicts.push_back(escape_for_terminal(publish::shown_path(conflict)) + ": " +
                        escape_for_terminal(conflict.reason));
  for (const auto& branch : status.branches) {
    if (branches.size() == kMostNamed) {
      branches.push_back("and " + std::to_string(status.branches.size() - kMostNamed) + " more: playfs branches");
      break;
    }
    branches.push_back(escape_for_terminal(branch->id.text()) + "  " + headline(*branch));
  }
  append_section(text, "In conflict (edit them before you commit, or use \"playfs commit --resolved\"):", conflicts);
  append_section(
      text, "Lost, which blocks commits (rewrite them, restore their bytes, or use \"playfs discard\"):", lost_files);
  append_section(text, "Staged for the next commit:", staged);
  append_section(text, "Being published:", pending);
  append_section(text, "Branches not merged into head (use \"playfs merge REVISION\" to merge one):", branches);
  append_section(text, "Local only, never published (ignored files and empty directories):", unpublished);
  append_section(text, "Published by others, but not shown:", refused);
  text += instructions_text(status);
  if (staged.empty() && pending.empty()) text += "Nothing is staged\n";
  text += progress_text(status);
  if (std::string next = next_command(status); !next.empty()) text += "\nNext: " + next + "\n";
  return text;
}

}  // namespace playfs::vfs
