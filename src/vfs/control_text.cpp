#include "vfs/control_text.h"

#include "base/text.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::vfs {
namespace {

Json time_or_null(const std::optional<WallTime>& time) { return time ? Json(format_iso8601(*time)) : Json(); }

Json id_array(const std::vector<RevisionId>& ids) {
  Json::Array array;
  for (const RevisionId& id : ids) array.emplace_back(id.text());
  return array;
}

JsonObject commit_members(const CommitResult& result) {
  Json::Array conflicts;
  for (const std::string& path : result.conflicts) conflicts.emplace_back(path);
  return {{"outcome", Json(name_of(result.outcome))},
          {"revision", result.revision.text()},
          {"merged_revision", result.merged_revision.text()},
          {"files_changed", std::int64_t{result.files_changed}},
          {"writes_used", std::int64_t{result.writes_used}},
          {"chunks_done", std::int64_t{result.chunks_done}},
          {"chunks_total", std::int64_t{result.chunks_total}},
          {"retry_after_s", std::int64_t{result.retry_after_s}},
          {"conflicts", std::move(conflicts)}};
}

Json publication_json(const ProjectStatus& status) {
  JsonObject json;
  json.set("phase", Json(name_of(status.progress ? status.progress->phase : Phase::idle)));
  if (status.progress) {
    json.set("chunks_done", std::int64_t{status.progress->so_far.chunks_done});
    json.set("chunks_total", std::int64_t{status.progress->so_far.chunks_total});
    json.set("retry_after_s", std::int64_t{status.progress->so_far.retry_after_s});
    json.set("waiting_for", status.progress->last_error ? error_json(*status.progress->last_error) : Json());
  }
  if (!status.last) {
    json.set("last", nullptr);
  } else if (*status.last) {
    json.set("last", commit_members(**status.last));
  } else {
    json.set("last", JsonObject{{"error", error_json(status.last->error())}});
  }
  return json;
}

void append_paths(std::string& text, std::string_view heading, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  text.append("\n").append(heading).append("\n");
  for (const std::string& line : lines) text.append("  ").append(line).append("\n");
}

std::string padded(std::string_view word, std::size_t width) {
  std::string text(word);
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string indented(std::string_view text) {
  std::string out;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    out.append("    ").append(text.substr(begin, end - begin)).append("\n");
    begin = end + 1;
  }
  return out;
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::published: return "published";
    case Outcome::merged: return "merged";
    case Outcome::branched: return "branched";
    case Outcome::pending: return "pending";
    case Outcome::nothing: return "nothing";
    case Outcome::planned: return "planned";
  }
  return "unknown";
}

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::idle: return "idle";
    case Phase::freezing: return "freezing";
    case Phase::planning: return "planning";
    case Phase::uploading: return "uploading";
    case Phase::posting: return "posting";
    case Phase::verifying: return "verifying";
  }
  return "unknown";
}

std::string_view name_of(stage::ChangeKind kind) {
  switch (kind) {
    case stage::ChangeKind::added: return "added";
    case stage::ChangeKind::modified: return "modified";
    case stage::ChangeKind::deleted: return "deleted";
  }
  return "unknown";
}

Json error_json(const Error& error) {
  return JsonObject{{"code", Json(name_of(error.code))},
                    {"message", error.message},
                    {"hint", error.hint},
                    {"retryable", is_retryable(error.code)}};
}

std::string error_document(const Error& error) {
  return wire::to_pretty_text(JsonObject{{"schema_version", kSchemaVersion}, {"error", error_json(error)}});
}

Json commit_json(const CommitResult& result) {
  JsonObject json = commit_members(result);
  json.set("schema_version", kSchemaVersion);
  return json;
}

std::string commit_document(const CommitResult& result) { return wire::to_pretty_text(commit_json(result)); }

Json health_json(const remote::Health& health) {
  return JsonObject{{"reachable", health.reachable},
                    {"last_error", health.last_error},
                    {"last_success", time_or_null(health.last_success)},
                    {"last_failure", time_or_null(health.last_failure)},
                    {"paused_until", time_or_null(health.paused_until)},
                    {"requests", health.requests}};
}

Json status_json(const ProjectStatus& status) {
  Json::Array staged, refused, unpublished;
  for (const stage::Change& change : status.changes) {
    staged.push_back(
        JsonObject{{"path", change.path}, {"change", Json(name_of(change.kind))}, {"pending", change.pending}});
  }
  for (const RefusedEntry& entry : status.refused) {
    refused.push_back(JsonObject{{"path", entry.path}, {"reason", entry.reason}});
  }
  for (const std::string& path : status.unpublished) unpublished.emplace_back(path);
  Json::Array conflicts, merging;
  for (const auto& conflict : status.conflicts)
    conflicts.push_back(
        JsonObject{{"path", conflict.path}, {"reason", conflict.reason}, {"markers", conflict.has_markers}});
  for (const auto& revision : status.merging) merging.emplace_back(revision.text());
  return JsonObject{{"schema_version", kSchemaVersion},
                    {"project", status.project.text()},
                    {"name", status.name},
                    {"base", status.base.text()},
                    {"head", status.head.text()},
                    {"branch", status.branch},
                    {"staged", std::move(staged)},
                    {"state_staged", status.state_staged},
                    {"conflicts", std::move(conflicts)},
                    {"merging", std::move(merging)},
                    {"refused", std::move(refused)},
                    {"unpublished", std::move(unpublished)},
                    {"publication", publication_json(status)},
                    {"writable", !status.no_work_tree.has_value()},
                    {"reason", status.no_work_tree ? Json(status.no_work_tree->message) : Json()},
                    {"health", health_json(status.health)}};
}

std::string status_text(const ProjectStatus& status) {
  std::string text = "Project " + escape_for_terminal(status.name.empty() ? status.project.text() : status.name);
  if (!status.name.empty()) text += " (" + escape_for_terminal(status.project.text()) + ")";
  text += "\n";
  const std::string base = escape_for_terminal(status.base.text());
  const std::string head = escape_for_terminal(status.head.text());
  if (status.base.empty() && status.head.empty()) {
    text += "Nothing has been published yet\n";
  } else if (status.base == status.head) {
    text += "At head, revision " + head + "\n";
  } else if (status.branch) {
    text += "On branch " + base + "; head is " + head + " (\"playfs update\" brings it in)\n";
  } else {
    text += "Based on " + (base.empty() ? "nothing" : base) + "; head is " + head + "\n";
  }
  for (const auto& revision : status.merging)
    text += "Merging " + escape_for_terminal(revision.text()) + ", which the next commit joins\n";
  if (status.no_work_tree) text += "Not writable: " + escape_for_terminal(status.no_work_tree->message) + "\n";
  if (!status.health.reachable) {
    text += "The service does not answer: " + escape_for_terminal(status.health.last_error) + "\n";
  }
  std::vector<std::string> staged, pending, unpublished, refused;
  for (const stage::Change& change : status.changes) {
    (change.pending ? pending : staged).push_back(padded(name_of(change.kind), 10) + escape_for_terminal(change.path));
  }
  if (status.state_staged) staged.push_back(padded("modified", 10) + "(the project's state)");
  for (const std::string& path : status.unpublished) unpublished.push_back(escape_for_terminal(path));
  for (const RefusedEntry& entry : status.refused) {
    refused.push_back(escape_for_terminal(entry.path) + ": " + escape_for_terminal(entry.reason));
  }
  std::vector<std::string> conflicts;
  for (const auto& conflict : status.conflicts)
    conflicts.push_back(escape_for_terminal(conflict.path) + ": " + escape_for_terminal(conflict.reason));
  append_paths(text,
               "In conflict, to be resolved before a commit (edit them, or \"playfs commit --resolved\"):", conflicts);
  append_paths(text, "Staged, to be published by a commit:", staged);
  append_paths(text, "Being published:", pending);
  append_paths(text, "Kept here, never published:", unpublished);
  append_paths(text, "Published by others, not shown:", refused);
  if (staged.empty() && pending.empty()) text += "Nothing is staged\n";
  if (status.progress && status.progress->phase != Phase::idle) {
    text += "\nPublication: " + std::string(name_of(status.progress->phase));
    if (status.progress->so_far.chunks_total > 0) {
      text += ", " + std::to_string(status.progress->so_far.chunks_done) + " of " +
              std::to_string(status.progress->so_far.chunks_total) + " chunks uploaded";
    }
    text += "\n";
    if (status.progress->last_error) {
      text += "  waiting: " + escape_for_terminal(status.progress->last_error->message) + "\n";
    }
  } else if (status.last && !*status.last) {
    text += "\nThe last commit failed: " + escape_for_terminal(status.last->error().message) + "\n";
  }
  return text;
}

std::string log_text(const std::vector<RevisionTreePtr>& line) {
  std::string text;
  for (const RevisionTreePtr& tree : line) {
    const Revision& revision = tree->revision;
    text += "revision " + escape_for_terminal(revision.id.text()) + "\n";
    if (revision.parents.size() > 1) {
      text += "Merges:";
      for (const RevisionId& parent : revision.parents) text += " " + escape_for_terminal(parent.text());
      text += "\n";
    }
    text += "Agent:  " + escape_for_terminal(revision.agent) + "\n";
    text += "Date:   " + format_iso8601(revision.created_at) + "\n\n";
    text += indented(escape_for_terminal(revision.message, true)) + "\n";
  }
  return text;
}

std::string log_ndjson(const std::vector<RevisionTreePtr>& line) {
  std::string text;
  for (const RevisionTreePtr& tree : line) {
    const Revision& revision = tree->revision;
    text += wire::to_text(JsonObject{{"revision", revision.id.text()},
                                     {"parents", id_array(revision.parents)},
                                     {"agent", revision.agent},
                                     {"message", revision.message},
                                     {"created_at", format_iso8601(revision.created_at)}});
    text += "\n";
  }
  return text;
}

std::string messages_text(const Record& thread, const std::vector<Record>& messages) {
  std::string text = "# " + escape_for_terminal(text_field(thread.fields, "title")) + "\n";
  auto append = [&](const Record& record, std::string_view body) {
    text += "\n**" + escape_for_terminal(text_field(record.fields, "agent")) + "** · " +
            escape_for_terminal(record.created_at) + " · " + escape_for_terminal(record.id) + "\n";
    if (std::string parent = text_field(record.fields, "parent"); !parent.empty()) {
      text += "(in answer to " + escape_for_terminal(parent) + ")\n";
    }
    if (!body.empty()) text += "\n" + escape_for_terminal(body, true) + "\n";
  };
  append(thread, text_field(thread.fields, "body"));
  for (const Record& message : messages) append(message, text_field(message.fields, "body"));
  return text;
}

std::string text_field(const JsonObject& fields, std::string_view name) {
  const Json* value = fields.find(name);
  const std::string* text = value ? value->string() : nullptr;
  return text ? *text : std::string();
}

}  // namespace playfs::vfs
