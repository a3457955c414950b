#include "vfs/control/requests.h"

#include <algorithm>

#include "vfs/attempt_fetches.h"
#include "vfs/control/control_text.h"
#include "vfs/mount.h"
#include "vfs/published/record_fetches.h"
#include "wire/json.h"

namespace playfs::vfs {

std::string help_document(const Form& form) {
  JsonObject fields;
  for (const auto& field : form.fields) fields.set(field.name, field.meaning);
  if (form.others) fields.set("…", "any other field is kept with the record");
  auto example = wire::parse_json(form.example);
  return wire::to_pretty_text(
      JsonObject{{"schema_version", kSchemaVersion},
                 {"outcome", nullptr},
                 {"write", std::string("plain text for \"") + form.plain + "\", or a JSON object"},
                 {"fields", std::move(fields)},
                 {"example", example ? std::move(*example) : Json()},
                 {"then", "all text written through one open is one request; read this file for its outcome"}});
}

Status check_fields(const JsonObject& body, const Form& form) {
  if (form.others) return {};
  std::string known;
  for (const auto& field : form.fields) known += (known.empty() ? "" : ", ") + std::string(field.name);
  for (const auto& [name, value] : body) {
    bool is_known = std::any_of(form.fields.begin(), form.fields.end(),
                                [&, &name = name](const Form::Field& field) { return name == field.name; });
    if (!is_known)
      return fail(ErrorCode::invalid_argument, "there is no field \"" + name + "\"", "the fields are " + known);
  }
  return {};
}

Result<JsonObject> request_body(const std::string& text, const Form& form) {
  const std::string plain = form.plain;
  std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos)
    return fail(ErrorCode::invalid_argument, "the request is empty",
                "write text, or JSON with at least \"" + plain + "\"");
  if (text[begin] == '{') {
    auto json = wire::parse_json(text);
    if (!json) return fail(ErrorCode::invalid_argument, "the request is not valid JSON: " + json.error().message);
    JsonObject body = *json->object();
    PLAYFS_CHECK(check_fields(body, form));
    if (!body.find(plain)) return fail(ErrorCode::invalid_argument, "the request has no \"" + plain + "\"");
    return body;
  }
  std::string_view value = text;
  if (value.ends_with('\n')) value.remove_suffix(1);
  return JsonObject{{plain, value}};
}

Async<RequestAnswer> create_record(Mount& mount, OperationPtr op, std::string collection, JsonObject body) {
  auto create = [&mount, collection, body = std::move(body)](const CancelToken& cancel, Callback<RecordPartPtr> made) {
    // Not on this thread: the client's threads carry all responses, and storing and parsing this one may take long.
    auto learn = [&mount, collection, cancel, made = std::move(made)](Result<Record> record) mutable {
      if (!record) return made(fail(std::move(record).error()));
      mount.executor().post(
          [&mount, collection, cancel, record = std::move(*record), made = std::move(made)]() mutable {
            auto text = std::make_shared<const content::RecordText>(mount.site().learn(collection, record));
            record = {};
            make_part(mount, std::move(text), text_of_record, cancel, std::move(made));
          });
    };
    mount.site().client().ask_now();
    mount.site().client().create_record(collection, body, mount.random().uuid(), cancel, std::move(learn));
  };
  PLAYFS_AWAIT(const RecordPartPtr part, answer<RecordPartPtr>(std::move(create)));
  PLAYFS_AWAIT_CHECK(until_listings_are_dropped(mount, op, collection, "told"));
  co_return RequestAnswer{shown_text_of(mount, collection, part->record.id, text_of_record, *part)};
}

void set_default_agent(const Mount& mount, JsonObject& body) {
  if (!body.find("agent") && !mount.options().agent.empty()) body.set("agent", mount.options().agent);
}

}  // namespace playfs::vfs
