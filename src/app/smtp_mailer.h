// The service's mail over SMTP, from a thread of its own, so that a slow mail server holds nothing else up.
// Thread-safe.
#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "net/smtp.h"
#include "service/mailer.h"

namespace playfs::app {

class SmtpMailer final : public service::Mailer {
 public:
  /// Clock and random must outlive it. What was not sent when it is destroyed is dropped.
  SmtpMailer(net::SmtpServer server, const Clock& clock, Random& random)
      : server_(std::move(server)), clock_(clock), random_(random) {}

  /// What goes wrong later is logged.
  [[nodiscard]] Status send(const service::Mail& mail) override;

 private:
  const net::SmtpServer server_;
  const Clock& clock_;
  Random& random_;
  ThreadPool thread_{1};  // last, so that it ends before what its tasks use
};

}  // namespace playfs::app
