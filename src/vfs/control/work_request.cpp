#include "vfs/control/work_request.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "model/path.h"
#include "vfs/control/control_text.h"
#include "wire/json.h"

namespace playfs::vfs {

namespace {

bool flag(const JsonObject& body, const char* name, bool otherwise) {
  const Json* value = body.find(name);
  return value && value->boolean() ? *value->boolean() : otherwise;
}

Status check_types(const JsonObject& body) {
  for (const char* name : {"wait", "resolved", "dry_run", "cancel", "update"})
    if (const Json* value = body.find(name); value && !value->boolean())
      return fail(ErrorCode::invalid_argument, std::string("\"") + name + "\" must be true or false");
  for (const char* name : {"message", "agent", "again"})
    if (const Json* value = body.find(name); value && !value->string())
      return fail(ErrorCode::invalid_argument, std::string("\"") + name + "\" must be a text");
  if (const Json* checkpoint = body.find("checkpoint"); checkpoint && !checkpoint->boolean() && !checkpoint->string())
    return fail(ErrorCode::invalid_argument, "\"checkpoint\" must be true, false or a text");
  if (const Json* id = body.find("restore_checkpoint"); id && id->integer().value_or(0) < 1)
    return fail(ErrorCode::invalid_argument, "\"restore_checkpoint\" must be the id of a checkpoint, a number");
  if (const Json* merge = body.find("merge"); merge && !merge->boolean() && !merge->string())
    return fail(ErrorCode::invalid_argument, "\"merge\" must be true, false or a revision");
  return {};
}

/// What a request does besides a commit: nobody who also gives a message, or asks for a dry run, means that.
Status check_alone(const JsonObject& body, WorkRequest::Kind kind) {
  std::vector<std::string_view> own;
  switch (kind) {
    case WorkRequest::Kind::commit: return {};
    case WorkRequest::Kind::cancel: own = {"cancel"}; break;
    case WorkRequest::Kind::update: own = {"update"}; break;
    case WorkRequest::Kind::merge: own = {"merge"}; break;
    case WorkRequest::Kind::discard: own = {"discard", "dry_run"}; break;
    case WorkRequest::Kind::checkpoint: own = {"checkpoint"}; break;
    case WorkRequest::Kind::restore: own = {"restore_checkpoint", "paths"}; break;
  }
  for (const auto& [name, value] : body)
    if (std::find(own.begin(), own.end(), name) == own.end())
      return fail(ErrorCode::invalid_argument,
                  fmt::format("\"{}\" does not go with \"{}\": nothing was done", name, own[0]));
  return {};
}

Result<std::vector<std::string>> paths_in(JsonObject body, const char* field) {
  PLAYFS_CHECK(make_list(body, field));
  std::vector<std::string> paths;
  for (const Json& each : *body.find(field)->array()) {
    auto path = path_below_root(*each.string());
    if (!path)
      return fail(ErrorCode::invalid_argument, "'" + *each.string() + "' is no path relative to the work tree's root",
                  "'.' is everything");
    paths.push_back(*std::move(path));
  }
  if (paths.empty())
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" names no path", field), "'.' is everything");
  return paths;
}

/// The kinds besides a commit that the fields ask for.
std::vector<WorkRequest::Kind> kinds_in(const JsonObject& body) {
  std::vector<WorkRequest::Kind> kinds;
  if (flag(body, "cancel", false)) kinds.push_back(WorkRequest::Kind::cancel);
  if (flag(body, "update", false)) kinds.push_back(WorkRequest::Kind::update);
  if (const Json* merge = body.find("merge"); merge && merge->string()) kinds.push_back(WorkRequest::Kind::merge);
  if (body.find("discard")) kinds.push_back(WorkRequest::Kind::discard);
  if (const Json* made = body.find("checkpoint"); made && (made->string() || *made->boolean()))
    kinds.push_back(WorkRequest::Kind::checkpoint);
  if (body.find("restore_checkpoint")) kinds.push_back(WorkRequest::Kind::restore);
  return kinds;
}

}  // namespace

const Form& work_request_form() {
  static const Form form{
      .plain = "message",
      .fields = {{"message", "what has changed, and why"},
                 {"agent", "the author's handle (default: the mount's)"},
                 {"wait", "false: answer as soon as the commit is safe on disk, and publish in the background"},
                 {"merge",
                  "false: publish a branch instead of merging with what others have published; or a revision: "
                  "merge it into the work tree, and publish nothing"},
                 {"resolved", "true: treat all conflicts as resolved"},
                 {"dry_run", "true: say what the commit would cost, or how much \"discard\" would drop; do nothing"},
                 {"cancel", "true: cancel commits that have not been sent; their changes are staged again"},
                 {"update", "true: bring in what others have published; publish nothing"},
                 {"discard",
                  "a path in work/ (\".\" is everything), or a list of them: drop what is staged there, new "
                  "files too, and keep it in a checkpoint; publish nothing"},
                 {"checkpoint", "true, or a message: keep what is staged on this machine; publish nothing"},
                 {"restore_checkpoint", "the id of a checkpoint in status.json: stage what it has; publish nothing"},
                 {"paths", "with \"restore_checkpoint\": only what is at and below these paths in work/"},
                 {"again", "the \"tx\" of an earlier commit: say what became of it; publish nothing"}},
      .example = R"({"message": "Fix the parser", "wait": false})"};
  return form;
}

Result<WorkRequest> parse_work_request(const std::string& text) {
  auto json = wire::parse_json(text);
  const JsonObject* fields = json ? json->object() : nullptr;
  WorkRequest wanted;
  JsonObject body;
  if (fields) {
    if (fields->had_duplicate_names) return fail(ErrorCode::invalid_argument, "a field is there twice");
    PLAYFS_CHECK(check_types(*fields));
    const auto kinds = kinds_in(*fields);
    if (kinds.size() > 1)
      return fail(ErrorCode::invalid_argument,
                  "one request does one of cancel, update, merge, discard, checkpoint and restore_checkpoint");
    if (!kinds.empty()) wanted.kind = kinds.front();
  }
  const bool needs_message = wanted.kind == WorkRequest::Kind::commit &&
                             !(fields && (flag(*fields, "dry_run", false) || fields->find("again")));
  if (needs_message) {
    PLAYFS_TRY(body, request_body(text, work_request_form()));
  } else {
    body = *fields;
    PLAYFS_CHECK(check_fields(body, work_request_form()));
    PLAYFS_CHECK(check_alone(body, wanted.kind));
  }
  CommitRequest& commit = wanted.commit;
  commit.message = text_field(body, "message");
  commit.agent = text_field(body, "agent");
  commit.again = text_field(body, "again");
  if (body.find("again") && commit.again.empty())
    return fail(ErrorCode::invalid_argument, "\"again\" must be the \"tx\" of a commit");
  commit.wait = flag(body, "wait", true);
  commit.allow_merge = flag(body, "merge", true);
  commit.resolved = flag(body, "resolved", false);
  commit.dry_run = flag(body, "dry_run", false);
  if (wanted.kind == WorkRequest::Kind::merge) wanted.revision = RevisionId(text_field(body, "merge"));
  if (wanted.kind == WorkRequest::Kind::discard) {
    PLAYFS_TRY(wanted.paths, paths_in(std::move(body), "discard"));
  } else if (wanted.kind == WorkRequest::Kind::checkpoint) {
    wanted.message = text_field(body, "checkpoint");
  } else if (wanted.kind == WorkRequest::Kind::restore) {
    wanted.checkpoint = static_cast<std::uint64_t>(*body.find("restore_checkpoint")->integer());
    if (body.find("paths")) {
      PLAYFS_TRY(wanted.paths, paths_in(std::move(body), "paths"));
    }
  } else if (body.find("paths")) {
    return fail(ErrorCode::invalid_argument, "\"paths\" goes with \"restore_checkpoint\" only: nothing was done");
  }
  return wanted;
}

std::string update_document(const char* outcome, const UpdateResult& result) {
  return wire::to_pretty_text(JsonObject{{"schema_version", kSchemaVersion},
                                         {"outcome", outcome},
                                         {"base", result.base},
                                         {"conflicts", std::int64_t{result.conflicts}}});
}

std::string discard_document(const DiscardResult& result, bool dry_run) {
  JsonObject document{{"schema_version", kSchemaVersion},
                      {"outcome", dry_run ? "planned" : "discarded"},
                      {"discarded", std::int64_t{result.paths}}};
  if (!dry_run) document.set("checkpoint", result.checkpoint == 0 ? Json() : Json(result.checkpoint));
  return wire::to_pretty_text(document);
}

std::string checkpoint_document(const CheckpointResult& result) {
  return wire::to_pretty_text(JsonObject{{"schema_version", kSchemaVersion},
                                         {"outcome", result.id == 0 ? "nothing" : "kept"},
                                         {"checkpoint", result.id == 0 ? Json() : Json(result.id)},
                                         {"paths", result.paths}});
}

std::string restore_document(std::uint64_t id, const RestoreResult& result) {
  return wire::to_pretty_text(JsonObject{{"schema_version", kSchemaVersion},
                                         {"outcome", "restored"},
                                         {"checkpoint", id},
                                         {"restored", std::int64_t{result.paths}},
                                         {"before", result.before == 0 ? Json() : Json(result.before)},
                                         {"conflicts", std::int64_t{result.conflicts}},
                                         {"base_then", result.base_then},
                                         {"base_now", result.base_now}});
}

}  // namespace playfs::vfs
