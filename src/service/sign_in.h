// The email-code flow: a code by mail, then an API key for whoever shows it. Thread-safe.
//
// A code is eight characters of chance, kept as a hash, good for ten minutes and five attempts; asking for another
// one makes it void. How often may be asked and tried is limited per address and per client. Answers never say
// whether an address is known here.
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

  /// All of them must outlive it.
  SignIn(Accounts& accounts, Mailer& mailer, const Clock& clock, Random& random)
      : accounts_(accounts), mailer_(mailer), clock_(clock), random_(random) {}

  /// POST request-code: {email}. `client` is whom the request is counted for. Errors: invalid_argument, rate_limited.
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
