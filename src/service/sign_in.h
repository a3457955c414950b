// Sign-in by email: sends a code by mail, and exchanges it for an API key. Thread-safe.
//
// A code is eight random characters, stored as a hash, and good once within ten minutes. A client's two newest codes
// for an address are valid; signing in voids all of the address. Requests and attempts are limited per address and per
// client, mails per address without refusing its owner. Answers never reveal whether an address is known.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/http.h"
#include "base/random.h"
#include "base/result.h"
#include "service/accounts.h"
#include "service/mailer.h"

namespace playfs::service {

class SignIn {
 public:
  static constexpr std::string_view kBasePath = "/api/auth/agent";
  static constexpr std::chrono::minutes kCodeLife{10};

  /// The arguments must outlive it.
  SignIn(Accounts& accounts, Mailer& mailer, const Clock& clock, Random& random)
      : accounts_(accounts), mailer_(mailer), clock_(clock), random_(random) {}

  /// Sends a code to an address, if it is one, unless one was sent lately and the address gets too much mail. Returns
  /// until when a code sent now is good. Errors: invalid_argument, rate_limited.
  [[nodiscard]] Result<WallTime> send_code(std::string_view address, const std::string& client) const;

  struct NewKey {
    std::string email;
    std::string key;  ///< known to nobody else from now on
    SignedIn signed_in;
  };
  /// Exchanges a code for a key. Errors: invalid_argument, unauthorized, rate_limited.
  [[nodiscard]] Result<NewKey> redeem(std::string_view address, std::string_view code, const std::string& client) const;
  /// A key that nobody has seen yet.
  [[nodiscard]] std::string make_key() const;

  /// POST request-code: {email}. The request counts against `client`. Errors: invalid_argument, rate_limited.
  Result<HttpResponse> request_code(const HttpRequest& request, const std::string& client) const;

  /// POST verify-code: {email, code}. Errors: invalid_argument, unauthorized, rate_limited.
  Result<HttpResponse> verify_code(const HttpRequest& request, const std::string& client) const;

 private:
  Accounts& accounts_;
  Mailer& mailer_;
  const Clock& clock_;
  Random& random_;
};

}  // namespace playfs::service
