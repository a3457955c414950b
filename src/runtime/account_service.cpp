#include "runtime/account_service.h"

#include <algorithm>
#include <utility>

#include "base/await.h"
#include "remote/retry_after.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::runtime {

namespace {

constexpr const char* kRequestCode = "/api/auth/agent/request-code";
constexpr const char* kVerifyCode = "/api/auth/agent/verify-code";
constexpr std::size_t kLongestKey = 4096;
constexpr wire::JsonLimits kAnswerLimits{.document_size = 64 << 10, .depth = 16, .values = 1000, .string_size = 8192};

/// The key goes into a header and a file.
bool is_key(const std::string& text) {
  return !text.empty() && text.size() <= kLongestKey &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

bool says_no(const JsonObject& answer) {
  const Json* success = answer.find("success");
  return success != nullptr && success->boolean() == false;
}

Status check_private(const Source& source) {
  if (source.may_carry_credentials()) return {};
  return fail(ErrorCode::not_permitted,
              source.text + " is plain http, where others could read the key on its way, so there is no signing in",
              "use its https:// address");
}

}  // namespace

Result<Source> account_service_of(const Source& site, const Settings& settings, const Places& places, const Io& io) {
  PLAYFS_CHECK(check_private(site));
  auto url = settings.text("account_url", site.text);
  if (!url) return site;
  auto account = parse_source(*url, std::nullopt, places, io);
  if (!account) return fail(account.error().while_doing("account_url"));
  if (account->kind != Source::Kind::http)
    return fail(ErrorCode::invalid_argument, "account_url=" + *url + " is not a host", "account_url=https://host");
  PLAYFS_CHECK(check_private(*account));
  return account;
}

Result<JsonObject> AccountService::post(const char* path, JsonObject body) {
  HttpRequest request{"POST", path, {}, wire::to_text(Json(std::move(body)))};
  request.headers.add("Content-Type", "application/json");
  request.headers.add("Accept", "application/json");
  request.headers.add("Origin", transport_->origin());
  const std::string what = transport_->origin() + path;
  auto response = await<HttpResponse>(
      [&](auto done) { transport_->send(std::move(request), net::Deadline{}, {}, std::move(done)); });
  if (!response) return fail(std::move(response).error());
  if (response->status < 200 || response->status >= 300) {
    Error error = wire::decode_error(response->status, response->body, remote::retry_after_of(*response, clock_));
    // In a record's words, 404 would be "no such record".
    if (error.code == ErrorCode::not_found)
      return fail(ErrorCode::not_found, "there is no signing in at " + what,
                  "set account_url to the account service of this site");
    return fail(std::move(error));
  }
  auto answer = wire::parse_answer(response->body, kAnswerLimits);
  if (!answer || answer->object() == nullptr)
    return fail(ErrorCode::protocol, what + ": the answer is not a JSON object");
  return std::move(*answer->object());
}

Result<std::optional<WallTime>> AccountService::request_code(const std::string& email) {
  PLAYFS_TRY(JsonObject answer, post(kRequestCode, {{"email", email}}));
  if (says_no(answer)) return fail(ErrorCode::protocol, "the service did not send a code");
  const Json* expires = answer.find("expiresAt");
  if (expires == nullptr || expires->string() == nullptr) return std::optional<WallTime>();
  return parse_iso8601(*expires->string());
}

Result<AccountService::NewKey> AccountService::verify_code(const std::string& email, const std::string& code) {
  auto answer = post(kVerifyCode, {{"email", email}, {"code", code}});
  // Services differ in how they say it.
  const bool is_wrong =
      answer ? says_no(*answer)
             : answer.error().code == ErrorCode::invalid_argument || answer.error().code == ErrorCode::unauthorized;
  if (is_wrong) return fail(ErrorCode::unauthorized, "the code is wrong or has expired");
  if (!answer) return fail(std::move(answer).error());
  const Json* key = answer->find("apiKey");
  if (key == nullptr || key->string() == nullptr || !is_key(*key->string()))
    return fail(ErrorCode::protocol, "the service took the code, but gave no usable key");
  const Json* is_new = answer->find("isNewUser");
  return NewKey{*key->string(), is_new != nullptr && is_new->boolean() == true};
}

}  // namespace playfs::runtime
