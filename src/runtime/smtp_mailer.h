// Sends the service's mail over SMTP on a separate thread, so that a slow mail server delays nothing else. Thread-safe.
#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "net/smtp.h"
#include "service/mailer.h"

namespace playfs::runtime {

class SmtpMailer final : public service::Mailer {
 public:
  /// Clock and random must outlive it. Its destructor drops unsent mail.
  SmtpMailer(net::SmtpServer server, const Clock& clock, Random& random)
      : server_(std::move(server)), clock_(clock), random_(random) {}

  /// Later failures are logged.
  [[nodiscard]] Status send(const service::Mail& mail) override;

 private:
  const net::SmtpServer server_;
  const Clock& clock_;
  Random& random_;
  ThreadPool thread_{1};  // last, so that it ends before what its tasks use
};

}  // namespace playfs::runtime
