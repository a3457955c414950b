#include "service/sign_in.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "model/json.h"
#include "service/identity.h"
#include "wire/json.h"

namespace playfs::service {

namespace {

// Digits and letters that survive being read aloud or copied by hand.
constexpr std::string_view kCodeAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr std::size_t kCodeLength = 8;
constexpr std::size_t kLongestEmail = 254;

constexpr std::chrono::hours kWindow{1};
// Counted per address and client, so that a stranger who requests or tries codes of an address takes nothing from its
// owner, who does so from another client.
//
// Only mail is limited over all clients, and never by refusing: strangers with a few addresses would use up any such
// limit for good, and lock the owner out. But each code that they request is mailed to the owner, and good whoever
// requested it. So past kMailsPerEmail, as long as the newest code that was mailed is good for another kLongEnough,
// nothing is sent: the owner's mailbox has a code that works, and gets no more than one mail in five minutes. Signing
// in voids all codes, so the next request is answered by a mail. A mail that was lost delays the next one that long.
constexpr int kCodesPerEmailAndClient = 5;
constexpr int kMailsPerEmail = 10;
constexpr std::chrono::minutes kLongEnough = SignIn::kCodeLife / 2;
constexpr int kCodesPerClient = 20;
constexpr int kAttemptsPerEmailAndClient = 5;  // while a code lives
constexpr int kAttemptsPerClient = 60;

WallTime later(WallTime time, std::chrono::nanoseconds by) { return {time.nanoseconds + by.count()}; }

std::string make_code(Random& random) {
  std::string code;
  for (std::uint64_t chance = random.next(); code.size() < kCodeLength; chance >>= 5)
    code += kCodeAlphabet[chance & 31];
  return code;
}

/// Undoes what people do to codes: other case, dashes, spaces, letters that look like digits.
std::string normalise_code(std::string_view text) {
  std::string code;
  for (char c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == ' ' || c == '-') continue;
    if (c == 'O') c = '0';
    if (c == 'I' || c == 'L') c = '1';
    code += c;
  }
  return code;
}

/// Includes the address, so that equal codes of two addresses have different hashes.
std::string hash_of_code(std::string_view email, std::string_view code) {
  return hash_of_secret(std::string(email) + '\n' + std::string(code));
}

/// Lower case; nullopt for text that cannot be one address, or that could break a header line.
std::optional<std::string> normalise_email(std::string_view text) {
  auto at = text.rfind('@');
  if (text.size() > kLongestEmail || at == std::string_view::npos || at == 0 || at + 1 == text.size())
    return std::nullopt;
  constexpr std::string_view forbidden = " ,;:<>()[]\\\"";
  bool plain = std::all_of(text.begin(), text.end(),
                           [&](char c) { return c > 0x20 && c < 0x7f && forbidden.find(c) == std::string_view::npos; });
  if (!plain || text.find('@') != at) return std::nullopt;
  return to_lower(text);
}

Result<JsonObject> read_body(const HttpRequest& request) {
  // JSON only: any page in a visitor's browser can post a form or plain text.
  auto type = request.headers.get("Content-Type").value_or("");
  if (to_lower(type.substr(0, type.find(';'))) != "application/json")
    return fail(ErrorCode::invalid_argument, "send Content-Type: application/json");
  auto body = wire::parse_json(request.body, {.document_size = 4096, .depth = 4, .values = 20, .string_size = 1024});
  if (!body) return fail(ErrorCode::invalid_argument, "the body is not valid JSON: " + body.error().message);
  if (!body->object()) return fail(ErrorCode::invalid_argument, "the body must be a JSON object");
  return *body->object();
}

Result<std::string> read_text(const JsonObject& body, std::string_view name) {
  const Json* value = body.find(name);
  if (!value || !value->string()) return fail(ErrorCode::invalid_argument, std::string(name) + " is missing");
  return *value->string();
}

Result<std::string> email_of(std::string_view text) {
  auto email = normalise_email(text);
  if (!email) return fail(ErrorCode::invalid_argument, "email must be one plain address");
  return *std::move(email);
}

HttpResponse answer(JsonObject body) {
  return {
      200, {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}}, wire::to_text(Json(std::move(body)))};
}

}  // namespace

std::string SignIn::make_key() const { return "playfs_" + random_.hex(48); }

Result<WallTime> SignIn::send_code(std::string_view address, const std::string& client) const {
  PLAYFS_TRY(std::string email, email_of(address));
  std::string code = make_code(random_);
  const std::string hash = hash_of_code(email, code);
  const WallTime now = clock_.wall(), expires = later(now, kCodeLife);
  const MailLimit limit{{"code for\n" + email, kMailsPerEmail, kWindow, "codes for this address"},
                        later(now, kLongEnough)};
  const std::array<Charge, 2> charges = {
      Charge{"code for\n" + email + '\n' + client, kCodesPerEmailAndClient, kWindow,
             "codes for this address from this client"},
      Charge{"codes to\n" + client, kCodesPerClient, kWindow, "codes requested by this client"}};
  PLAYFS_TRY(const bool is_put, accounts_.put_code({email, client, hash, expires}, limit, charges));
  // The answer is the same: from the time of an earlier code, strangers would learn when the owner signs in.
  if (!is_put) return expires;
  std::string shown = code.substr(0, kCodeLength / 2) + "-" + code.substr(kCodeLength / 2);
  PLAYFS_CHECK(
      mailer_.send({email, "Your sign-in code: " + shown,
                    "Your sign-in code is " + shown + "\n\nIt is valid for " + std::to_string(kCodeLife.count()) +
                        " minutes. If you did not request it, ignore this mail.\n",
                    client, expires}));
  return expires;
}

Result<SignIn::NewKey> SignIn::redeem(std::string_view address, std::string_view code,
                                      const std::string& client) const {
  PLAYFS_TRY(std::string email, email_of(address));
  std::string key = make_key();
  const std::array<Charge, 2> charges = {
      Charge{"attempts at\n" + email + '\n' + client, kAttemptsPerEmailAndClient, kCodeLife,
             "attempts at this address"},
      Charge{"attempts of\n" + client, kAttemptsPerClient, kWindow, "attempts by this client"}};
  PLAYFS_TRY(auto signed_in,
             accounts_.redeem_code(email, hash_of_code(email, normalise_code(code)), hash_of_secret(key), charges));
  if (!signed_in) return fail(ErrorCode::unauthorized, "the code is invalid or has expired; request a new one");
  return NewKey{std::move(email), std::move(key), *std::move(signed_in)};
}

Result<HttpResponse> SignIn::request_code(const HttpRequest& request, const std::string& client) const {
  PLAYFS_TRY(JsonObject body, read_body(request));
  PLAYFS_TRY(std::string email, read_text(body, "email"));
  PLAYFS_TRY(WallTime expires, send_code(email, client));
  return answer({{"success", true}, {"requiresCodeEntry", true}, {"expiresAt", format_iso8601(expires)}});
}

Result<HttpResponse> SignIn::verify_code(const HttpRequest& request, const std::string& client) const {
  PLAYFS_TRY(JsonObject body, read_body(request));
  PLAYFS_TRY(std::string email, read_text(body, "email"));
  PLAYFS_TRY(std::string code, read_text(body, "code"));
  PLAYFS_TRY(NewKey made, redeem(email, code, client));
  return answer({{"success", true}, {"email", made.email}, {"apiKey", made.key}, {"isNewUser", made.signed_in.is_new}});
}

}  // namespace playfs::service
