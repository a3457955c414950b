#include "http/pages/account.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "http/pages/views.h"
#include "service/identity.h"
#include "service/problem.h"
#include "service/target.h"

namespace playfs::http {

namespace {

constexpr std::string_view kAccountPath = "/account";
constexpr std::string_view kCookie = "playfs_account";
constexpr std::size_t kLargestForm = 4096;
constexpr int kSessionSeconds = 3600;
/// Limits making keys, which no other limit covers. Counted among the ten keys that an account keeps.
constexpr int kKeysAMinute = 5;

Url account_url(std::string_view what = {}) {
  const Url url = Url() / kAccountPath.substr(1);
  return what.empty() ? url : url / what;
}

std::optional<std::string> cookie_of(const HttpRequest& request) {
  std::string_view rest = request.headers.get("Cookie").value_or("");
  while (!rest.empty()) {
    const auto end = rest.find(';');
    const std::string_view pair = trim(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    const auto equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == kCookie)
      return std::string(pair.substr(equals + 1));
  }
  return std::nullopt;
}

HttpResponse account_response(Document document, const SiteView& site) {
  document.crumbs = {};
  HttpResponse response;
  response.status = document.status;
  response.headers.add("Content-Type", "text/html; charset=utf-8");
  response.body = print(document, site);
  return response;
}

void show_input(Html& html, const char* id, const char* label, const char* type, const char* completion) {
  auto line = html.open("p");
  html.element("label", {{"for", id}}, label);
  html.text(" ");
  html.lone("input", {{"id", id}, {"name", id}, {"type", type}, {"autocomplete", completion}, {"required", ""}});
}

void show_hidden(Html& html, const char* name, std::string_view value) {
  html.lone("input", {{"type", "hidden"}, {"name", name}, {"value", value}});
}

void show_button(Html& html, std::string_view label) {
  auto line = html.open("p");
  html.element("button", {{"type", "submit"}}, label);
}

Document titled(std::string_view title) {
  Document document;
  document.title = title;
  document.main.element("h1", title);
  return document;
}

Document sign_in_form() {
  Document document = titled("Your account");
  Html& html = document.main;
  html.element("p", {{"class", "lead"}}, "Sign in with a code that is sent to your email address.");
  {
    auto form = html.open("form", {{"method", "post"}, {Address::action, account_url("code")}});
    show_input(html, "email", "Email address", "email", "email");
    show_button(html, "Send a code");
  }
  return document;
}

Document code_form(std::string_view email) {
  Document document = titled("Enter the code");
  Html& html = document.main;
  html.element("p", {{"class", "lead"}},
               "If the address is right, a code is on its way, or arrived within the last minutes. It is good for ten "
               "minutes, and once; the newest mail has the one to enter.");
  {
    auto form = html.open("form", {{"method", "post"}, {Address::action, account_url("sign-in")}});
    show_hidden(html, "email", email);
    show_input(html, "code", "Code", "text", "one-time-code");
    show_button(html, "Sign in");
  }
  {
    auto more = html.open("p", {{"class", "more"}});
    html.link(account_url(), "Another address");
  }
  return document;
}

void show_keys(Html& html, const std::vector<service::ApiKey>& keys, std::string_view own) {
  auto list = html.open("ul", {{"class", "items"}});
  for (const service::ApiKey& key : keys) {
    auto item = html.open("li");
    html.element("code", {{"class", "id"}}, key.id);
    html.text(" since ");
    show_time(html, format_iso8601(key.created_at));
    if (key.id == own) {
      html.element("span", {{"class", "badge"}}, "this browser");
      continue;
    }
    auto form = html.open("form", {{"method", "post"}, {Address::action, account_url("revoke")}});
    show_hidden(html, "key", key.id);
    show_button(html, "Revoke");
  }
}

}  // namespace

/// What a browser sent.
struct AccountPage::Form {
  service::Target fields;
  [[nodiscard]] std::string_view field(std::string_view name) const { return fields.parameter(name).value_or(""); }

  static Result<Form> parse(const HttpRequest& request) {
    const auto type = request.headers.get("Content-Type").value_or("");
    if (to_lower(trim(type.substr(0, type.find(';')))) != "application/x-www-form-urlencoded" ||
        request.body.size() > kLargestForm)
      return fail(ErrorCode::invalid_argument, "this is not a form of these pages");
    std::string query = "?" + request.body;
    std::replace(query.begin(), query.end(), '+', ' ');
    PLAYFS_TRY(service::Target fields, service::parse_target(query));
    fields.path = {};  // it refers to the text that was parsed
    return Form{std::move(fields)};
  }
};

bool AccountPage::serves(std::string_view path) {
  return path == kAccountPath || path.starts_with(std::string(kAccountPath) + '/');
}

HttpResponse AccountPage::handle(const HttpRequest& request, const std::string& peer, const service::SiteHosts& hosts,
                                 const SiteView& site) const {
  auto answer = route(request, peer, hosts, site);
  if (answer) return *std::move(answer);
  const service::Problem problem = service::problem_of(answer.error());
  Document document = problem_page(problem.status, service::reason_phrase(problem.status), problem.message + ".");
  {
    auto more = document.main.open("p", {{"class", "more"}});
    document.main.link(account_url(), "Your account");
  }
  HttpResponse response = account_response(std::move(document), site);
  if (problem.retry_after) response.headers.add("Retry-After", std::to_string(problem.retry_after->count()));
  if (!problem.allow.empty()) response.headers.add("Allow", problem.allow);
  return response;
}

Result<HttpResponse> AccountPage::route(const HttpRequest& request, const std::string& peer,
                                        const service::SiteHosts& hosts, const SiteView& site) const {
  const std::string_view path = std::string_view(request.target).substr(0, request.target.find('?'));
  const bool is_reading = request.method == "GET" || request.method == "HEAD";
  if (is_reading && path == kAccountPath) {
    PLAYFS_TRY(auto session, session_of(request));
    if (session) return keys(*session, {}, site);
    return account_response(sign_in_form(), site);
  }
  if (is_reading || path == kAccountPath) return fail(ErrorCode::not_found, "there is no such page");
  if (request.method != "POST") return fail(ErrorCode::invalid_argument, "only forms are sent here");
  // Every supported browser says where a form comes from.
  const auto origin = request.headers.get("Origin");
  if (!origin ||
      !hosts.is_own_origin(*origin, request.headers.get("Host").value_or(""), options_.is_secure(request, peer)))
    return fail(ErrorCode::permission_denied, "the form does not come from a page of this site");
  return submit(path.substr(kAccountPath.size() + 1), request, peer, site);
}

Result<HttpResponse> AccountPage::submit(std::string_view what, const HttpRequest& request, const std::string& peer,
                                         const SiteView& site) const {
  PLAYFS_TRY(const Form form, Form::parse(request));
  if (what == "code") {
    PLAYFS_CHECK(sign_in_.send_code(form.field("email"), options_.client(request, peer)));
    return account_response(code_form(form.field("email")), site);
  }
  if (what == "sign-in") return enter(form, request, peer, site);
  PLAYFS_TRY(auto session, session_of(request));
  if (!session) return back({}, false);
  if (what == "keys") return make_key(*session, site);
  if (what == "revoke" || what == "sign-out") {
    const std::string key = what == "revoke" ? std::string(form.field("key")) : session->key_id;
    // No id means all keys, which no form here asks for.
    if (!key.empty()) PLAYFS_CHECK(accounts_.revoke_keys(session->account.id, key));
    return back(what == "revoke" ? std::string() : "gone; Max-Age=0", options_.is_secure(request, peer));
  }
  return fail(ErrorCode::not_found, "there is no such page");
}

Result<HttpResponse> AccountPage::enter(const Form& form, const HttpRequest& request, const std::string& peer,
                                        const SiteView& site) const {
  auto made = sign_in_.redeem(form.field("email"), form.field("code"), options_.client(request, peer));
  if (!made && made.error().code == ErrorCode::unauthorized) {
    Document document = code_form(form.field("email"));
    document.main.element("p", {{"class", "note"}, {"role", "alert"}}, "That code is wrong, used or too old.");
    document.status = 401;
    return account_response(std::move(document), site);
  }
  if (!made) return fail(std::move(made).error());
  // Revoke this browser's previous key: otherwise signing in repeatedly would push out the keys of the account's
  // agents.
  PLAYFS_TRY(auto before, session_of(request));
  if (before) PLAYFS_CHECK(accounts_.revoke_keys(before->account.id, before->key_id));
  return back(made->key + "; Max-Age=" + std::to_string(kSessionSeconds), options_.is_secure(request, peer));
}

Result<HttpResponse> AccountPage::make_key(const Session& session, const SiteView& site) const {
  PLAYFS_TRY(auto known, accounts_.keys_of(session.account.id));
  const std::int64_t minute_ago = clock_.wall().nanoseconds - std::chrono::nanoseconds(std::chrono::minutes(1)).count();
  const auto recent = std::count_if(
      known.begin(), known.end(), [&](const service::ApiKey& key) { return key.created_at.nanoseconds > minute_ago; });
  if (recent >= kKeysAMinute)
    return fail(Error{ErrorCode::rate_limited, "you have made several keys just now", {}, std::chrono::seconds(60)});
  const std::string key = sign_in_.make_key();
  PLAYFS_CHECK(accounts_.sign_in(session.account.email, service::hash_of_secret(key)));
  return keys(session, key, site);
}

Result<HttpResponse> AccountPage::keys(const Session& session, const std::string& new_key, const SiteView& site) const {
  PLAYFS_TRY(auto known, accounts_.keys_of(session.account.id));
  Document document = titled("Your account");
  Html& html = document.main;
  {
    auto lead = html.open("p", {{"class", "lead"}});
    html.text("Signed in as ");
    show_name(html, session.account.email);
  }
  if (!new_key.empty()) {
    auto section = html.open("section", {{"aria-labelledby", "new"}, {"role", "status"}});
    html.element("h2", {{"id", "new"}}, "A new key");
    html.element("p", "Copy it now: it is not shown again.");
    html.element("pre", {{"tabindex", "0"}}, new_key);
  }
  {
    auto section = html.open("section", {{"aria-labelledby", "keys"}});
    html.element("h2", {{"id", "keys"}}, "Keys");
    html.element("p", {{"class", "note"}},
                 "Who has one of them writes as you. The newest ten are kept. Only the beginning of a key's hash is "
                 "shown.");
    show_keys(html, known, session.key_id);
    auto form = html.open("form", {{"method", "post"}, {Address::action, account_url("keys")}});
    show_button(html, "Make a key");
  }
  {
    auto form = html.open("form", {{"method", "post"}, {Address::action, account_url("sign-out")}});
    show_button(html, "Sign out");
  }
  return account_response(std::move(document), site);
}

Result<std::optional<AccountPage::Session>> AccountPage::session_of(const HttpRequest& request) const {
  auto key = cookie_of(request);
  if (!key) return std::nullopt;
  const std::string hash = service::hash_of_secret(*key);
  PLAYFS_TRY(auto id, accounts_.account_of_key(hash));
  if (!id) return std::nullopt;
  PLAYFS_TRY(auto account, accounts_.find_account(*id));
  if (!account) return std::nullopt;
  return Session{*std::move(account), *std::move(key), hash.substr(0, service::kKeyIdLength)};
}

HttpResponse AccountPage::back(const std::string& cookie, bool is_secure) const {
  HttpResponse response;
  response.status = 303;
  response.headers.add("Location", account_url().text());
  if (!cookie.empty())
    response.headers.add("Set-Cookie", std::string(kCookie) + '=' + cookie + "; Path=" + std::string(kAccountPath) +
                                           "; HttpOnly; SameSite=Strict" + (is_secure ? "; Secure" : ""));
  return response;
}

}  // namespace playfs::http
