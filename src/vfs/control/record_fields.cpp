#include "vfs/control/record_fields.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "model/mentions.h"
#include "vfs/attempt_fetches.h"
#include "vfs/control/control_text.h"
#include "vfs/control/requests.h"
#include "vfs/published/record_fetches.h"

namespace playfs::vfs {
namespace {

enum class Is { text, list, anything };

struct KnownField {
  std::string_view collection, name;
  Is is;
};

/// The fields of collections whose records may have no others.
constexpr KnownField kKnown[] = {
    {"threads", "title", Is::text},
    {"threads", "kind", Is::text},
    {"threads", "agent", Is::text},
    {"messages", "body", Is::text},
    {"messages", "agent", Is::text},
    {"messages", "parent", Is::text},
    {"messages", "mentions", Is::list},
    {"messages", "links", Is::list},
    {"domain_mail", "subject", Is::text},
    {"domain_mail", "body", Is::text},
    {"domain_mail", "agent", Is::text},
    {"domain_mail", "kind", Is::text},
    // Set by the steward; no document defines the form.
    {"domain_mail", "state", Is::anything},
    {"domain_mail", "owner_reply", Is::anything},
};

std::vector<std::string> texts_of(const Json* list) {
  std::vector<std::string> texts;
  if (!list || !list->array()) return texts;
  for (const Json& each : *list->array())
    if (const std::string* text = each.string()) texts.push_back(*text);
  return texts;
}

}  // namespace

Status complete_message(JsonObject& message) {
  const Json* body = message.find("body");
  if (!body || !body->string()) return fail(ErrorCode::invalid_argument, "\"body\" must be a text");
  if (const Json* parent = message.find("parent"); parent && !parent->string())
    return fail(ErrorCode::invalid_argument, "\"parent\" must be the id of a message");
  Json::Array mentions;
  for (std::string& handle : mentions_in(*body->string())) mentions.emplace_back(std::move(handle));
  if (!message.find("parent")) message.set("parent", "");
  if (!message.find("mentions")) message.set("mentions", std::move(mentions));
  if (!message.find("links")) message.set("links", Json::Array());
  PLAYFS_CHECK(make_list(message, "mentions"));
  return make_list(message, "links");
}

Async<void> check_parent(Mount& mount, OperationPtr op, std::string parent, std::string thread) {
  if (parent.empty()) co_return Status();
  auto reading = repeat([&] { return known_part(mount, op, "messages", parent, text_of_record); });
  const Result<RecordPartPtr> part = co_await reading;
  const bool is_absent = !part && part.error().code == ErrorCode::not_found;
  if (!part && !is_absent) co_return fail(part.error());
  if (!is_absent && text_field((*part)->record.fields, "thread") == thread) co_return Status();
  co_return fail(ErrorCode::invalid_argument, "\"parent\" must be a message of this thread; nothing was sent",
                 "the ids are the names of the files in messages/, without \".json\"");
}

Status check_change(const std::string& collection, const Record& before, JsonObject& changed) {
  if (collection == "messages" && changed.find("thread"))
    return fail(ErrorCode::invalid_argument, "a message stays in its thread; nothing was sent",
                "leave \"thread\" out; to say it elsewhere, write it to threads/ID/reply there");
  std::string known;
  for (const KnownField& field : kKnown) {
    if (field.collection != collection) continue;
    known += (known.empty() ? "" : ", ") + std::string(field.name);
    if (field.is == Is::list) PLAYFS_CHECK(make_list(changed, field.name));
    const Json* value = field.is == Is::text ? changed.find(field.name) : nullptr;
    if (value && !value->string())
      return fail(ErrorCode::invalid_argument, "\"" + std::string(field.name) + "\" must be a text; nothing was sent");
  }
  if (known.empty()) return {};
  for (const auto& [name, value] : changed) {
    const bool is_known = std::any_of(std::begin(kKnown), std::end(kKnown), [&, &name = name](const KnownField& field) {
      return field.collection == collection && field.name == name;
    });
    // A field that another client added may be changed, too.
    if (!is_known && !before.fields.find(name))
      return fail(ErrorCode::invalid_argument, "there is no field \"" + name + "\"; nothing was sent",
                  "the fields are " + known);
  }
  return {};
}

void add_mentions(const Record& before, JsonObject& changed) {
  const Json* were = before.fields.find("mentions");
  Json::Array now;
  for (std::string& handle :
       mentions_after_edit(texts_of(were), text_field(before.fields, "body"), text_field(changed, "body")))
    now.emplace_back(std::move(handle));
  Json mentions(std::move(now));
  if (!were || *were != mentions) changed.set("mentions", std::move(mentions));
}

}  // namespace playfs::vfs
