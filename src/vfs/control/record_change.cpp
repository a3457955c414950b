#include "vfs/control/record_change.h"

#include <atomic>
#include <chrono>
#include <memory>

#include "content/names.h"
#include "vfs/attempt_fetches.h"
#include "vfs/control/control_text.h"
#include "vfs/control/handles.h"
#include "vfs/control/record_fields.h"
#include "vfs/control/record_name.h"
#include "vfs/control/request_journal.h"
#include "vfs/control/request_sending.h"
#include "vfs/control/requests.h"
#include "vfs/mount.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::vfs {
namespace {

/// Head moves only by commits: a copy that is written back late would undo what others have published since.
constexpr const char* kHead = "latest_revision";

/// A first attempt this soon after the name was checked does not ask for it again.
constexpr std::chrono::seconds kJustAsked{1};

/// The client may wait before it sends, and repeats a change that was refused because of too many: others may have
/// renamed the record meanwhile. Its name has just been checked.
remote::Permit permit_of(Mount& mount, Addressed addressed) {
  auto is_repeated = std::make_shared<std::atomic<bool>>(false);
  return [&mount, addressed, is_repeated, asked_at = mount.clock().steady()](bool in_doubt, const CancelToken& cancel,
                                                                             Callback<void> done) {
    if (!is_repeated->exchange(true) && mount.clock().steady() - asked_at < kJustAsked) return done({});
    ask_name(mount, addressed, in_doubt, cancel, std::move(done));
  };
}

Async<Record> patch(Mount& mount, std::string collection, std::string id, JsonObject fields, remote::Permit permit) {
  auto send = [&mount, collection, id, permit = std::move(permit), fields = std::move(fields)](
                  const CancelToken& cancel, Callback<Record> done) mutable {
    mount.site().client().ask_now();
    mount.site().client().patch_record(collection, id, std::move(fields), cancel, std::move(done), permit);
  };
  auto sent = answer<Record>(std::move(send));
  co_return co_await sent;
}

/// The name by which the path led to the record; empty: the path has its id.
std::string name_in_path(const Operation& op, const ShownRecord& shown) {
  if (!shown.called.empty()) return shown.called;
  const bool is_it = op.named && op.named->collection == shown.collection && op.named->id == shown.id;
  return is_it ? op.named->name : std::string();
}

/// Where the record's file is, whatever the record is called.
std::string path_by_id(const ShownRecord& shown) {
  if (shown.collection == "threads") return "threads/" + shown.id + "/thread.json";
  if (shown.collection == "projects") return "projects/" + shown.id + "/project.json";
  return shown.collection + "/" + shown.id + ".json";
}

Result<Record> decode(const std::string& text) {
  PLAYFS_TRY(const Json json, wire::parse_json(text));
  return wire::decode_record(json);
}

Error outdated() {
  return {ErrorCode::stale, "the record has changed since it was read; read it again",
          "only a copy with the updated_at that the file shows is taken; without updated_at, what differs is set"};
}

/// What a change makes of the record's name.
struct NameChange {
  std::string from, to;
  [[nodiscard]] bool is_any() const { return from != to; }
};

NameChange name_change_of(const std::string& collection, Record record, const JsonObject& changed) {
  NameChange name{content::name_carried(collection, record), {}};
  for (const auto& [field, value] : changed) record.fields.set(field, value);
  name.to = content::name_carried(collection, record);
  return name;
}

/// What waits to be sent to the thread is addressed to its new title, also by the next mount.
Fetch readdress(Mount& mount, const std::string& thread, const NameChange& name) {
  return on_disk(mount, [&mount, thread, name]() -> Status {
    mount.journal().readdress(thread, name.from, name.to);
    return {};
  });
}

/// Refreshes the project's head, since `status` and by-name/ show its cached record.
Async<void> refresh_head(Mount& mount, std::string project) {
  auto ask = [&mount, project](const CancelToken& cancel, Callback<content::Head> done) {
    mount.site().refresh_head(ProjectId(project), cancel, std::move(done));
  };
  auto asked = answer<content::Head>(std::move(ask));
  const auto head = co_await asked;
  static_cast<void>(head);  // the change is made; if this failed, a later response will do
  co_return Status();
}

}  // namespace

std::optional<Record> OwnChanges::record() const {
  MutexLock lock(mutex_);
  return record_;
}

void OwnChanges::set(Record record) {
  MutexLock lock(mutex_);
  record_ = std::move(record);
}

std::optional<std::string> OwnChanges::name() const {
  MutexLock lock(mutex_);
  return name_;
}

void OwnChanges::set_name(std::string name) {
  MutexLock lock(mutex_);
  name_ = std::move(name);
}

Result<JsonObject> changed_fields(const std::string& collection, const Record& before, const Record& now,
                                  const std::string& written) {
  auto json = wire::parse_json(written);
  if (!json || !json->object())
    return fail(ErrorCode::invalid_argument,
                "not a JSON object: " + (json ? std::string("write {…}") : json.error().message));
  JsonObject document = *json->object();
  PLAYFS_TRY(const bool is_dry, take_dry_run(document));
  if (is_dry)
    return fail(ErrorCode::invalid_argument, "a record's file takes no \"dry_run\"; nothing was sent",
                "leave it out to make the change: the fields that differ from what the file shows are sent at once");
  bool is_copy = false;
  for (const char* spelling : {"updated_at", "updatedAt"}) {
    const Json* version = document.find(spelling);
    is_copy = is_copy || version;
    if (version && version->string() && *version->string() != before.updated_at) return fail(outdated());
  }
  for (const char* system : {"created_at", "createdAt", "updated_at", "updatedAt", "status"}) document.erase(system);
  document.set("id", now.id);
  PLAYFS_TRY(const Record after, wire::decode_record(Json(std::move(document))));
  JsonObject changed;
  for (const auto& [name, value] : after.fields) {
    const Json *was = before.fields.find(name), *is = now.fields.find(name);
    // What a copy leaves as it was is not written by anybody.
    if ((is && *is == value) || (is_copy && was && *was == value)) continue;
    if (is_copy && was && (!is || *is != *was)) return fail(outdated());
    changed.append(name, value);
  }
  PLAYFS_CHECK(check_change(collection, now, changed));
  // An edited copy of the record contains its old mentions, too: these count only if they were edited.
  const bool are_said = changed.find("mentions") || (after.fields.find("mentions") && !is_copy);
  if (collection == "messages" && changed.find("body") && !are_said) add_mentions(now, changed);
  return changed;
}

Async<RequestAnswer> change_record(Mount& mount, OperationPtr op, ShownRecord shown, std::shared_ptr<OwnChanges> own,
                                   std::string text) {
  if (shown.text.size() > content::kParsedAtOnce)
    co_return fail(ErrorCode::record_too_large, "the record is too large to be changed by its file",
                   "send the fields with `playfs api`");
  std::optional<Record> before = own->record();
  if (!before) {
    PLAYFS_AWAIT(const std::string was, repeat([&] { return shown.text.read(mount, op, 0, content::kParsedAtOnce); }));
    PLAYFS_CO_TRY(before, decode(was));
  }
  auto asking = current_record(mount, shown.collection, shown.id);
  Result<Record> asked = co_await asking;
  if (!asked) co_return fail(std::move(asked).error().while_doing("read the record, which was not changed"));
  const Record now = *std::move(asked);
  remote::Permit permit;
  if (const std::string called = name_in_path(*op, shown); !called.empty()) {
    // A change made through this open file may have renamed the record.
    const Addressed addressed{shown.collection, shown.id, own->name().value_or(called), path_by_id(shown)};
    if (Status is_it = check_name(mount, addressed, now); !is_it) {
      mount.site().relearn(shown.collection, now);
      co_return fail(std::move(is_it).error());
    }
    permit = permit_of(mount, addressed);
  }
  Result<JsonObject> differing = changed_fields(shown.collection, *before, now, text);
  if (now.updated_at != before->updated_at && (!differing || differing->empty()))
    mount.site().relearn(shown.collection, now);
  PLAYFS_CO_TRY(JsonObject changed, std::move(differing));
  if (changed.empty()) co_return RequestAnswer{std::string(), false};
  if (shown.collection == "projects" && changed.find(kHead))
    co_return fail(ErrorCode::invalid_argument, "latest_revision is moved by commits; nothing was changed",
                   "leave it out, or write back what the file shows now");
  if (json_size(changed) > kMaxRecordSize)
    co_return fail(ErrorCode::record_too_large, "the change is larger than a record may be; nothing was changed");
  if (shown.collection == "agents")
    PLAYFS_AWAIT_CHECK(check_handle_is_free(mount, op, text_field(changed, "handle"), shown.id));
  if (shown.collection == "messages")
    PLAYFS_AWAIT_CHECK(check_parent(mount, op, text_field(changed, "parent"), text_field(now.fields, "thread")));
  const NameChange name = name_change_of(shown.collection, now, changed);
  if (name.is_any()) mount.own_renames().note(shown.collection, shown.id, name.from, name.to);
  auto patching = patch(mount, shown.collection, shown.id, changed, permit);
  Result<Record> answered = co_await patching;
  if (!answered) {
    if (name.is_any() && !is_undecided(answered.error()))
      mount.own_renames().forget(shown.collection, shown.id, name.from);
    if (traits_of(answered.error().code).reached != Reached::decision) {
      // These fields' values at the service are now unknown, so the next write sends them in any case.
      for (const auto& [name, value] : changed) before->fields.erase(name);
      own->set(*std::move(before));
    }
    Error error = with_advice(std::move(answered).error(),
                              "the change may have arrived: read the file, and write it again if it has not",
                              "wait, then write the change again");
    if (shown.collection == "domain_mail" && error.code == ErrorCode::permission_denied && error.hint.empty())
      error.hint = "its author can change it, signed in as when it was sent (playfs login), and so can the steward";
    co_return fail(std::move(error));
  }
  const Record record = *std::move(answered);
  own->set(record);
  if (name.is_any()) {
    mount.own_renames().note(shown.collection, shown.id, name.from, name.to);
    own->set_name(name.to);
    if (shown.collection == "threads") PLAYFS_AWAIT_CHECK(readdress(mount, shown.id, name));
  }
  mount.site().relearn(shown.collection, record);
  if (shown.collection == "projects") PLAYFS_AWAIT_CHECK(refresh_head(mount, shown.id));
  PLAYFS_AWAIT_CHECK(until_listings_are_dropped(mount, op, shown.collection, "told of the list"));
  co_return RequestAnswer{std::string(), false};
}

}  // namespace playfs::vfs
