#include "vfs/control/control_text.h"

#include "base/hints.h"
#include "base/text.h"
#include "vfs/published/history.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::vfs {
namespace {

Json time_or_null(const std::optional<WallTime>& time) { return time ? Json(format_iso8601(*time)) : Json(); }

Json id_array(std::span<const RevisionId> ids) {
  Json::Array array;
  for (const RevisionId& id : ids) array.emplace_back(id.text());
  return array;
}

/// Prefixes each line with a mark, so that no line of a stranger's text passes for another message.
std::string as_quote(std::string_view text) {
  std::string quoted;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    quoted += line.empty() ? ">" : "> " + std::string(line);
    quoted += '\n';
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return quoted;
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

/// The record with only these fields, and of these only text, cut as by shown_text().
Record with_fields(const Record& record, std::initializer_list<const char*> names) {
  Record shown{shown_text(record.id), shown_text(record.created_at), shown_text(record.updated_at), {}, {}};
  for (const char* name : names) {
    const Json* value = record.fields.find(name);
    if (const std::string* text = value ? value->string() : nullptr) shown.fields.set(name, shown_text(*text));
  }
  return shown;
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
    case Outcome::cancelled: return "cancelled";
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

JsonObject error_json(const Error& error) {
  JsonObject fields{{"code", Json(name_of(error.code))},
                    {"message", error.message},
                    {"hint", std::string(hint_of(error))},
                    {"retryable", is_transient(error.code)}};
  if (error.retry_after) fields.append("retry_after_s", std::int64_t{error.retry_after->count()});
  return fields;
}

std::string error_document(const Error& error) {
  return wire::to_pretty_text(JsonObject{{"schema_version", kSchemaVersion}, {"error", error_json(error)}});
}

std::string unfinished_document() {
  return wire::to_pretty_text(
      JsonObject{{"schema_version", kSchemaVersion},
                 {"outcome", nullptr},
                 {"hint", "the request is still being written: it is sent when the file is closed"}});
}

JsonObject commit_members(const CommitResult& result) {
  Json::Array conflicts;
  for (const std::string& path : result.conflicts) conflicts.emplace_back(path);
  return {{"outcome", Json(name_of(result.outcome))},
          {"tx", result.tx},
          {"revision", result.revision.text()},
          {"merged_revision", result.merged_revision.text()},
          {"files_changed", std::int64_t{result.files_changed}},
          {"writes_used", std::int64_t{result.writes_used}},
          {"chunks_done", std::int64_t{result.chunks_done}},
          {"chunks_total", std::int64_t{result.chunks_total}},
          {"retry_after_s", std::int64_t{result.retry_after_s}},
          {"conflicts", std::move(conflicts)}};
}

Json commit_json(const CommitResult& result) {
  JsonObject json = commit_members(result);
  json.set("schema_version", kSchemaVersion);
  return json;
}

Json plan_json(const publish::PlannedCommit& plan) {
  Json::Array paths;
  for (const auto& each : plan.paths)
    paths.push_back(JsonObject{{"path", each.path},
                               {"deleted", each.deleted},
                               {"bytes", each.size},
                               {"chunks", std::uint64_t{each.chunks}},
                               {"chunk_bytes", each.sent}});
  return JsonObject{{"revision_bytes", plan.revision_size},
                    {"revision_bytes_limit", std::uint64_t{kMaxRecordSize}},
                    {"paths", std::move(paths)}};
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

std::string duration_words(std::uint64_t seconds) {
  constexpr std::uint64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  if (seconds < 2 * kMinute) return std::to_string(seconds) + " s";
  if (seconds < 2 * kHour) return std::to_string((seconds + kMinute / 2) / kMinute) + " min";
  if (seconds < 2 * kDay)
    return std::to_string(seconds / kHour) + " h " + std::to_string(seconds % kHour / kMinute) + " min";
  return std::to_string((seconds + kDay / 2) / kDay) + " days";
}

std::string size_words(std::uint64_t bytes) {
  constexpr std::uint64_t kKilobyte = 1024;
  if (bytes < kKilobyte) return std::to_string(bytes) + " B";
  if (bytes < 10 * kKilobyte * kKilobyte) return std::to_string((bytes + kKilobyte / 2) / kKilobyte) + " KB";
  return std::to_string((bytes + kKilobyte * kKilobyte / 2) / (kKilobyte * kKilobyte)) + " MB";
}

std::string log_text(const std::vector<content::SummaryPtr>& line) {
  std::string text;
  for (const content::SummaryPtr& summary : line) {
    const content::RevisionSummary& revision = *summary;
    text += "revision " + escape_for_terminal(revision.id.text()) + "\n";
    const auto parents = revision.shown_parents();
    if (parents.size() > 1) {
      text += "Merges:";
      for (const RevisionId& parent : parents) text += " " + escape_for_terminal(parent.text());
      if (const std::size_t more = revision.more_parents(); more > 0) text += " and " + std::to_string(more) + " more";
      text += "\n";
    }
    text += "Agent:  " + escape_for_terminal(revision.agent) + "\n";
    text += "Date:   " + format_iso8601(revision.created_at) + "\n\n";
    text += indented(escape_for_terminal(revision.message, true)) + "\n";
  }
  return text;
}

std::string log_ndjson(const std::vector<content::SummaryPtr>& line) {
  std::string text;
  for (const content::SummaryPtr& summary : line) {
    const content::RevisionSummary& revision = *summary;
    const auto parents = revision.shown_parents();
    JsonObject json{{"revision", revision.id.text()},
                    {"parents", id_array(parents)},
                    {"agent", revision.agent},
                    {"message", revision.message},
                    {"created_at", format_iso8601(revision.created_at)}};
    if (const std::size_t more = revision.more_parents(); more > 0) json.append("more_parents", std::uint64_t{more});
    text += escape_json_for_terminal(wire::to_text(json)) + "\n";
  }
  return text;
}

content::Reduced text_of_record(Record record) {
  content::Reduced reduced{with_fields(record, {"thread"}), {}};
  reduced.text = wire::to_pretty_text(wire::encode_record(record));
  return reduced;
}

content::Reduced text_of_state(Record record) {
  const Json* state = record.fields.find("state");
  // A project without a state has the empty state.
  return {with_fields(record, {}), wire::to_pretty_text(state && !state->is_null() ? *state : Json(JsonObject()))};
}

content::Reduced shown_of_message(Record record) {
  return {with_fields(record, {"title", "agent", "parent", "body"}), {}};
}

namespace {

std::string entry_text(const Record& record, std::string_view body) {
  std::string text = "\n**" + escape_for_terminal(text_field(record.fields, "agent")) + "** · " +
                     escape_for_terminal(record.created_at) + " · " + escape_for_terminal(record.id) + "\n";
  if (std::string parent = text_field(record.fields, "parent"); !parent.empty() && parent != record.id)
    text += "(in reply to " + escape_for_terminal(parent) + ")\n";
  if (!body.empty()) text += "\n" + as_quote(escape_for_terminal(body, true));
  return text;
}

}  // namespace

std::string messages_text(const Record& thread, std::span<const content::RecordPartPtr> messages, std::size_t older,
                          bool is_whole) {
  std::string text = "# " + escape_for_terminal(text_field(thread.fields, "title")) + "\n" +
                     entry_text(thread, text_field(thread.fields, "body"));
  if (older > 0)
    text += "\n(Older messages not shown here: " + std::to_string(older) + ". Each is a file in messages/.)\n";
  if (!is_whole)
    text += "\n(Too many messages to list: older ones of this thread may be missing here and in messages/.)\n";
  return text + messages_text(messages);
}

std::string messages_text(std::span<const content::RecordPartPtr> messages) {
  std::string text;
  for (const auto& message : messages) text += entry_text(message->record, text_field(message->record.fields, "body"));
  return text;
}

std::string text_field(const JsonObject& fields, std::string_view name) {
  const Json* value = fields.find(name);
  const std::string* text = value ? value->string() : nullptr;
  return text ? *text : std::string();
}

}  // namespace playfs::vfs
