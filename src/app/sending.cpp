#include "app/sending.h"

#include <algorithm>
#include <array>

#include "app/kept_key.h"
#include "base/await.h"
#include "base/shell.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

/// Room for what the service adds to a record: its id, times and status. Generous.
constexpr std::size_t kSystemFields = 512;
constexpr int kConflict = 409;

/// Whether it can be printed as JSON: words of a command line may have any bytes.
bool is_text(const Json& value) {
  if (value.string()) return is_valid_utf8(*value.string());
  return value.array() == nullptr || std::all_of(value.array()->begin(), value.array()->end(), is_text);
}

/// Whether the outcome is final, so that the request need not be repeated.
bool is_decided(const Error& error, const KeptKey& key) {
  // A refusal does not tell the outcome of an earlier run. A conflict may be with that run's request, still under way.
  if (key.is_repeated() || error.http_status == kConflict) return false;
  const Reached reached = reached_of(error);
  return reached == Reached::decision || reached == Reached::nobody;
}

bool is_decided(const Result<Record>& created, const KeptKey& key) {
  return created || is_decided(created.error(), key);
}

/// Adds to an error whether the request may have arrived. `key`: null if nothing prevents a second record, so the user
/// should check first.
Error failure(Error error, const Sending& sending, const KeptKey* key) {
  error = error.while_doing(sending.what);
  std::string again = sending.again;
  if (again.empty() && key && key->is_kept()) again = "run the same command again: it is posted once";
  const std::string check = again.empty() ? sending.look + ", since it may have arrived; then repeat the command"
                                          : again + "; whether it has arrived already: " + sending.look;
  const bool is_repeated = key && key->is_repeated();
  switch (reached_of(error)) {
    case Reached::nobody:
    case Reached::decision:
      if (error.is_unsent && !is_repeated)
        error.hint = sending.again.empty() ? "repeat the command later: nothing was sent" : sending.again;
      if (!key || is_decided(error, *key)) break;
      error.hint = check;
      // The refusal may last as long as the key is kept.
      if (is_repeated && key->is_kept() && sending.key.empty() && error.http_status != kConflict)
        error.hint = sending.look + ", since an earlier attempt may have arrived; to send it as new: rm " +
                     shell_word(key->path());
      break;
    case Reached::no_use:
      if (error.code == ErrorCode::rate_limited) {
        error.hint = is_repeated ? "wait, then " + check : "wait, then repeat the command: nothing was sent";
        break;
      }
      [[fallthrough]];
    case Reached::given_up:
    case Reached::silence: error.hint = check; break;
  }
  return error;
}

Result<KeptKey> key_for(runtime::ClientStack& stack, const Sending& sending, const JsonObject& body) {
  auto key = KeptKey::of(stack, sending.collection, body, sending.key);
  if (!key) return fail(key.error().while_doing(sending.what));
  return key;
}

Result<Record> create_with(runtime::ClientStack& stack, const Sending& sending, const KeptKey& key,
                           const JsonObject& body) {
  stack.client().ask_now();
  auto created = await<Record>([&](auto done) {
    stack.client().create_record(sending.collection, body, key.text(), {}, std::move(done), key.as());
  });
  if (!created) return fail(failure(std::move(created).error(), sending, &key));
  stack.site().learn(sending.collection, *created);
  return created;
}

}  // namespace

Status check_fits(const JsonObject& body, const std::string& what) {
  std::size_t size = kSystemFields, largest = 0;
  std::string name;
  for (const auto& field : body) {
    if (!is_text(field.value))
      return fail(ErrorCode::invalid_argument, what + ": '" + field.name + "' is not UTF-8: nothing was sent");
    const std::size_t bytes = json_size(field.value);
    size += field.name.size() + bytes;
    if (bytes > largest) largest = bytes, name = field.name;
  }
  if (size <= kMaxRecordSize) return {};
  return fail(ErrorCode::record_too_large,
              what + ": '" + name + "' is too long: it takes " + std::to_string(largest) +
                  " bytes, and a record has room for " + std::to_string(kMaxRecordSize) + " in all",
              "shorten it by " + std::to_string(size - kMaxRecordSize) + " bytes, or send it in parts");
}

Result<Record> create_record(runtime::ClientStack& stack, const Sending& sending, const JsonObject& body) {
  PLAYFS_CHECK(check_fits(body, sending.what));
  PLAYFS_TRY(KeptKey key, key_for(stack, sending, body));
  auto created = create_with(stack, sending, key, body);
  if (is_decided(created, key)) key.forget();
  return created;
}

Result<Record> change_record(runtime::ClientStack& stack, const Sending& sending, const std::string& id,
                             JsonObject fields) {
  PLAYFS_CHECK(check_fits(fields, sending.what));
  stack.client().ask_now();
  auto changed = await<Record>(
      [&](auto done) { stack.client().patch_record(sending.collection, id, std::move(fields), {}, std::move(done)); });
  if (!changed) return fail(failure(std::move(changed).error(), sending, nullptr));
  return changed;
}

Result<BegunThread> begin_thread(const CommandContext& context, runtime::ClientStack& stack, Beginning beginning) {
  PLAYFS_CHECK(check_fits(beginning.thread, beginning.what));
  auto key_of = [&](const char* collection) { return beginning.key_of ? beginning.key_of(collection) : std::string(); };
  Sending sending{"threads", beginning.what, context.next_command({{"thread", "list"}}), key_of("threads"),
                  beginning.again};
  PLAYFS_TRY(KeptKey thread_key, key_for(stack, sending, beginning.thread));
  auto created = create_with(stack, sending, thread_key, beginning.thread);
  if (!beginning.message || !created) {
    if (is_decided(created, thread_key)) thread_key.forget();
    PLAYFS_TRY(Record alone, std::move(created));
    return BegunThread{std::move(alone), {}};
  }
  Record thread = std::move(*created);
  beginning.message->set("thread", thread.id);
  sending = {"messages", "post its first message", context.next_command({{"thread", "show"}, {thread.id}}),
             key_of("messages"), beginning.again};
  auto message_key = key_for(stack, sending, *beginning.message);
  if (!message_key) return BegunThread{std::move(thread), Result<Record>(fail(std::move(message_key).error()))};
  auto message = create_with(stack, sending, *message_key, *beginning.message);
  const bool is_settled = is_decided(message, *message_key);
  // Until then the key is kept, so that the same command finds the thread again.
  if (is_settled) {
    thread_key.forget();
    message_key->forget();
  }
  if (message) return BegunThread{std::move(thread), std::move(message)};
  const bool may_be_repeated = !is_settled && message.error().code != ErrorCode::rate_limited;
  Error error = std::move(message).error().while_doing("the thread " + thread.id + " has begun");
  if (!may_be_repeated || (!message_key->is_kept() && beginning.again.empty()))
    error.hint = beginning.again.empty()
                     ? context.next_command({{"post"}, {thread.id}, {"-m", "…"}}) + ", to post it there"
                     : beginning.again;
  return BegunThread{std::move(thread), Result<Record>(fail(std::move(error)))};
}

ExitCode show_unsent(CommandContext& context, const std::string& collection, JsonObject body) {
  context.out.note("Nothing was sent. Without --dry-run, this would go to " + safe(collection) + ":");
  if (!context.out.json()) context.out.bytes(wire::to_pretty_text(Json(body)));
  context.out.document(JsonObject{{"dry_run", true}, {"collection", collection}, {"body", std::move(body)}});
  return ExitCode::done;
}

Result<JsonObject> fields_from(const std::vector<std::string>& words) {
  static constexpr std::array<std::string_view, 4> kSystem = {"id", "created_at", "updated_at", "status"};
  JsonObject fields;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(ErrorCode::invalid_argument, "'" + word + "' is not NAME=VALUE", "about='what I do'");
    const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
    if (!is_valid_utf8(name)) return fail(ErrorCode::invalid_argument, "the name of a field is not UTF-8");
    if (std::find(kSystem.begin(), kSystem.end(), name) != kSystem.end())
      return fail(ErrorCode::invalid_argument, "the service alone sets '" + name + "'");
    auto json = wire::parse_json(value);
    fields.set(name, json ? std::move(*json) : Json(value));
  }
  return fields;
}

}  // namespace playfs::app
