// Sends the service's mail over SMTP on threads of its own, so that a slow mail server delays nothing else.
// Thread-safe.
//
// Strangers may request mail for any number of addresses. So clients take turns, as their requests do: whoever requests
// a hundred mails delays only himself. Mail that waited for too long is dropped, and so is mail past a limit.
#pragma once

#include <atomic>

#include "base/clock.h"
#include "base/random.h"
#include "http/fair_pool.h"
#include "net/smtp.h"
#include "service/mailer.h"

namespace playfs::runtime {

class SmtpMailer final : public service::Mailer {
 public:
  /// Connections to the mail server, which may take seconds to accept a mail.
  static constexpr unsigned kConnections = 4;
  static constexpr std::size_t kMostWaiting = 500;

  /// Clock and random must outlive it.
  SmtpMailer(net::SmtpServer server, const Clock& clock, Random& random)
      : server_(std::move(server)), clock_(clock), random_(random) {}
  /// Drops unsent mail.
  ~SmtpMailer() override { ending_ = true; }

  /// Later failures are logged.
  [[nodiscard]] Status send(const service::Mail& mail) override;

 private:
  void send_in_turn(const net::MailMessage& message, WallTime good_until) const;

  const net::SmtpServer server_;
  const Clock& clock_;
  Random& random_;
  std::atomic<bool> ending_ = false;
  /// Last, so that it ends before what its jobs use. Clients without an earlier mail come first, since any job counts
  /// as dear.
  http::FairPool pool_{kConnections, kMostWaiting, 0, std::chrono::nanoseconds(0)};
};

}  // namespace playfs::runtime
