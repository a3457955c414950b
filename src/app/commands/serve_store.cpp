// playfs serve SUBCOMMAND: backs up, checks and moves a store, and does the domain steward's work. All of it works
// beside running servers, which notice changes as they notice each other's writes.
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "app/commands/commands.h"
#include "app/commands/serve_copy.h"
#include "base/private_place.h"
#include "runtime/local_playground.h"
#include "service/collections.h"
#include "service/postgres_maintenance.h"
#include "service/postgres_store.h"
#include "service/sqlite_maintenance.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

constexpr std::size_t kAccountsAtOnce = 100;

Status check_it_exists(const StorePlace& place) {
  if (access(place.file().c_str(), F_OK) != 0) return fail(error_from_errno(errno, place.file()));
  return {};
}

/// Unlike a server, creates nothing. `steward_key` permits everything, and is valid only in this process.
Result<std::unique_ptr<runtime::LocalPlayground>> open_existing_playground(const CommandContext& context,
                                                                           const StorePlace& place,
                                                                           std::string steward_key = {}) {
  service::ServiceOptions options;
  options.steward_key = std::move(steward_key);
  if (place.is_database()) {
    PLAYFS_TRY(auto store, service::PostgresStore::open_existing(place.database, context.io.clock, context.io.random));
    return runtime::LocalPlayground::over(std::move(store), std::move(options), context.io.clock, context.io.random);
  }
  PLAYFS_CHECK(check_it_exists(place));
  return runtime::LocalPlayground::open(place.directory, std::move(options), context.io.clock, context.io.random);
}

Result<ExitCode> back_up(CommandContext& context, const StorePlace& place, const std::string& file) {
  if (place.is_database())
    return fail(ErrorCode::not_supported, "backup copies a store on this disk; a database has tools of its own",
                "pg_dump --format=custom --file=FILE URL, and later pg_restore");
  const std::string store = place.file(), copy = context.io.absolute(file);
  PLAYFS_CHECK(service::back_up_store(store, copy));
  context.out.note("Copied " + store + " to " + copy + ".");
  context.out.document(JsonObject{{"store", store}, {"copy", copy}});
  return ExitCode::done;
}

Result<ExitCode> check(CommandContext& context, const StorePlace& place) {
  const std::string store = place.name();
  if (!place.is_database()) {
    PLAYFS_CHECK(check_it_exists(place));
    // As serve does; a file, such as a backup, may be anywhere.
    if (place.file() != place.directory) PLAYFS_CHECK(keep_private(place.directory));
  }
  PLAYFS_TRY(std::uint64_t records,
             place.is_database() ? service::check_postgres_store(place.database) : service::check_store(place.file()));
  context.out.note(store + " is sound: " + std::to_string(records) + " records.");
  context.out.document(JsonObject{{"store", store}, {"records", records}});
  return ExitCode::done;
}

Result<ExitCode> hide(CommandContext& context, const StorePlace& place, const std::string& id, bool undo) {
  PLAYFS_TRY(auto playground, open_existing_playground(context, place));
  const std::string status = undo ? service::kInitialStatus : service::kHiddenStatus;
  for (const service::Collection& collection : service::all_collections()) {
    auto changed = playground->store().set_status(collection.name, id, status);
    if (!changed && changed.error().code == ErrorCode::not_found) continue;
    if (!changed) return fail(std::move(changed).error());
    context.out.note(std::string(collection.name) + "/" + safe(id) + (undo ? " is shown again." : " is hidden."));
    context.out.document(JsonObject{{"collection", collection.name}, {"id", id}, {"status", status}});
    return ExitCode::done;
  }
  return fail(ErrorCode::not_found, "there is no record " + safe(id));
}

/// The error in a response of the service.
Error error_of(const HttpResponse& response) {
  std::string message = "the service answered " + std::to_string(response.status);
  if (auto body = wire::parse_json(response.body); body && body->object())
    if (const Json* text = body->object()->find("message"); text && text->string()) message = *text->string();
  return {response.status == 404 ? ErrorCode::not_found : ErrorCode::invalid_argument, std::move(message)};
}

/// Sends a request as the steward, so that it is checked like any other.
Result<ExitCode> answer(CommandContext& context, const ServeArguments& arguments, const StorePlace& place,
                        const std::string& mail) {
  if (arguments.message.empty() && arguments.state.empty())
    return fail(ErrorCode::invalid_argument, "an answer needs a text", "playfs serve answer MAIL -m TEXT");
  const std::string key = context.io.random.hex(48);
  PLAYFS_TRY(auto playground, open_existing_playground(context, place, key));
  JsonObject fields;
  if (!arguments.message.empty()) fields.append("owner_reply", arguments.message);
  if (!arguments.state.empty()) fields.append("state", arguments.state);
  const HttpRequest request{"PATCH",
                            service::ServiceOptions().base_path + "/domain_mail/" + percent_encode(mail),
                            {{"Host", playground->store().site_id()},
                             {"Authorization", "Bearer " + key},
                             {"Content-Type", "application/json"}},
                            wire::to_text(Json(std::move(fields)))};
  const HttpResponse response = playground->service().handle(request, {"local"});
  if (response.status != 200) return fail(error_of(response));
  context.out.note("Mail " + safe(mail) + " is answered.");
  context.out.document(JsonObject{{"id", mail}});
  return ExitCode::done;
}

Result<ExitCode> list_accounts(CommandContext& context, const StorePlace& place) {
  PLAYFS_TRY(auto playground, open_existing_playground(context, place));
  service::Accounts& accounts = playground->accounts();
  std::string after;
  for (;;) {
    PLAYFS_TRY(auto some, accounts.list_accounts(after, kAccountsAtOnce));
    for (const service::Account& account : some) {
      PLAYFS_TRY(auto keys, accounts.keys_of(account.id));
      context.out.line(safe(account.email) + "  " + account.id + "  since " + format_iso8601(account.created_at));
      Json::Array listed;
      for (const service::ApiKey& key : keys) {
        context.out.line("  key " + key.id + "  since " + format_iso8601(key.created_at));
        listed.emplace_back(JsonObject{{"id", key.id}, {"created_at", format_iso8601(key.created_at)}});
      }
      context.out.stream_item(JsonObject{{"email", account.email},
                                         {"account", account.id},
                                         {"created_at", format_iso8601(account.created_at)},
                                         {"keys", std::move(listed)}});
    }
    if (some.size() < kAccountsAtOnce) return ExitCode::done;
    after = some.back().email;
  }
}

Result<ExitCode> revoke(CommandContext& context, const StorePlace& place, const std::string& email,
                        const std::optional<std::string>& key_id) {
  const bool by_id = key_id.has_value();
  const std::string key = key_id.value_or("");
  if (by_id && key.empty()) return fail(ErrorCode::invalid_argument, "the key's id is empty", "playfs serve accounts");
  PLAYFS_TRY(auto playground, open_existing_playground(context, place));
  PLAYFS_TRY(auto account, playground->accounts().find_account(to_lower(email)));
  if (!account) return fail(ErrorCode::not_found, "there is no account of " + safe(email));
  PLAYFS_TRY(const std::int64_t revoked, playground->accounts().revoke_keys(account->id, key));
  if (revoked == 0 && by_id) return fail(ErrorCode::not_found, "that account has no key " + safe(key));
  context.out.note("Revoked " + std::to_string(revoked) + (revoked == 1 ? " key of " : " keys of ") + safe(email) +
                   ".");
  context.out.document(JsonObject{{"account", account->id}, {"revoked", revoked}});
  return ExitCode::done;
}

}  // namespace

Result<ExitCode> care_for_store(CommandContext& context, const ServeArguments& arguments, const StorePlace& place) {
  const auto& words = arguments.words;
  const std::string& first = words.front();
  if (first == "backup" && words.size() == 2) return back_up(context, place, words[1]);
  if (first == "copy" && words.size() == 3) return copy_playground(context, words[1], words[2]);
  if (first == "reopen" && words.size() == 1) return reopen_playground(context, place);
  if (first == "check" && words.size() == 1) return check(context, place);
  if (first == "hide" && words.size() == 2) return hide(context, place, words[1], arguments.undo);
  if (first == "answer" && words.size() == 2) return answer(context, arguments, place, words[1]);
  if (first == "accounts" && words.size() == 1) return list_accounts(context, place);
  if (first == "accounts" && (words.size() == 3 || words.size() == 4) && words[1] == "revoke")
    return revoke(context, place, words[2], words.size() == 4 ? std::optional(words[3]) : std::nullopt);
  return fail(
      ErrorCode::invalid_argument,
      "serve takes backup FILE, check, copy FROM TO, reopen, hide ID, answer MAIL, accounts [revoke EMAIL [KEY]],"
      " or nothing",
      "playfs serve --help");
}

}  // namespace playfs::app
