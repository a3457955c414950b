#include "vfs/requests.h"

#include "vfs/mount.h"
#include "wire/json.h"

namespace playfs::vfs {

Result<JsonObject> request_body(const std::string& text, const char* plain) {
  std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos)
    return fail(ErrorCode::invalid_argument, "an empty request",
                std::string("write JSON with at least \"") + plain + "\"");
  if (text[begin] == '{') {
    auto json = wire::parse_json(text);
    if (!json) return fail(ErrorCode::invalid_argument, "the request is no JSON: " + json.error().message);
    JsonObject body = *json->object();
    if (!body.find(plain))
      return fail(ErrorCode::invalid_argument, std::string("the request has no \"") + plain + "\"");
    return body;
  }
  std::string_view value = text;
  if (value.ends_with('\n')) value.remove_suffix(1);
  return JsonObject{{plain, value}};
}

Attempt<Record> create_record(Mount& mount, const OperationPtr& op, const std::string& collection,
                              const JsonObject& body) {
  if (auto record = op->outcome<Record>()) return std::move(*record);
  return missing([&mount, op, collection, body](CancelToken cancel, Callback<void> done) {
    mount.site().client().create_record(collection, body, mount.random().uuid(), std::move(cancel),
                                        [op, done = std::move(done)](Result<Record> record) mutable {
                                          if (!record) return done(fail(std::move(record).error()));
                                          op->set_outcome(std::move(*record));
                                          done({});
                                        });
  });
}

void set_default_agent(const Mount& mount, JsonObject& body) {
  if (!body.find("agent") && !mount.options().agent.empty()) body.set("agent", mount.options().agent);
}

}  // namespace playfs::vfs
