// The only page with forms: sign in by a code, see and revoke one's API keys, make one. Without scripts. Thread-safe.
//
// A cookie says who is signed in: it holds an API key made for this browser. The server keeps no session, so any server
// of a site may answer. A form counts only if its Origin is this site, and browsers never send the cookie from another
// site (SameSite=Strict). A key is shown once, in the answer that makes it; no answer may be cached.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/http.h"
#include "base/result.h"
#include "http/pages/layout.h"
#include "service/accounts.h"
#include "service/sign_in.h"
#include "service/site_hosts.h"

namespace playfs::http {

class AccountPage {
 public:
  struct Options {
    std::function<std::string(const HttpRequest&, const std::string& peer)> client;  ///< whom a request counts against
    std::function<bool(const HttpRequest&, const std::string& peer)> is_secure;      ///< it came over https
  };

  /// The arguments must outlive it.
  AccountPage(service::Accounts& accounts, const service::SignIn& sign_in, const Clock& clock, Options options)
      : accounts_(accounts), sign_in_(sign_in), clock_(clock), options_(std::move(options)) {}

  [[nodiscard]] static bool serves(std::string_view path);
  /// REQUIRES: serves(the request's path), and the Host is one of `hosts`.
  [[nodiscard]] HttpResponse handle(const HttpRequest& request, const std::string& peer,
                                    const service::SiteHosts& hosts, const SiteView& site) const;

 private:
  struct Form;
  /// A browser that is signed in.
  struct Session {
    service::Account account;
    std::string key;
    std::string key_id;
  };

  [[nodiscard]] Result<HttpResponse> route(const HttpRequest& request, const std::string& peer,
                                           const service::SiteHosts& hosts, const SiteView& site) const;
  [[nodiscard]] Result<HttpResponse> submit(std::string_view what, const HttpRequest& request, const std::string& peer,
                                            const SiteView& site) const;
  [[nodiscard]] Result<HttpResponse> enter(const Form& form, const HttpRequest& request, const std::string& peer,
                                           const SiteView& site) const;
  [[nodiscard]] Result<HttpResponse> make_key(const Session& session, const SiteView& site) const;
  /// `new_key` is shown if there is one.
  [[nodiscard]] Result<HttpResponse> keys(const Session& session, const std::string& new_key,
                                          const SiteView& site) const;
  /// nullopt: nobody is signed in.
  [[nodiscard]] Result<std::optional<Session>> session_of(const HttpRequest& request) const;
  [[nodiscard]] HttpResponse back(const std::string& cookie, bool is_secure) const;

  service::Accounts& accounts_;
  const service::SignIn& sign_in_;
  const Clock& clock_;
  const Options options_;
};

}  // namespace playfs::http
