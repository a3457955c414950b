#include "runtime/smtp_mailer.h"

#include <ctime>

#include <fmt/chrono.h>

#include "base/log.h"

namespace playfs::runtime {

namespace {
std::string mail_date(WallTime now) {
  std::time_t seconds = now.seconds();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:%a, %d %b %Y %H:%M:%S} +0000", parts);
}
}  // namespace

Status SmtpMailer::send(const service::Mail& mail) {
  auto at = server_.from.rfind('@');
  std::string id = random_.uuid() + (at == std::string::npos ? "@localhost" : server_.from.substr(at));
  net::MailMessage message{mail.to, mail.subject, mail.text, std::move(id), mail_date(clock_.wall())};
  // Set during offer() if there is no room for this mail, or later if the mail is dropped to make room for another.
  auto is_dropped = std::make_shared<std::atomic<bool>>(false);
  pool_.offer(mail.client, [this, is_dropped, message = std::move(message), until = mail.good_until](bool has_turn) {
    if (has_turn) return send_in_turn(message, until);
    *is_dropped = true;
    log_warning("mail: dropped one, since " + std::to_string(kMostWaiting) + " are waiting to be sent");
  });
  if (*is_dropped) return fail(ErrorCode::busy, "too many mails are waiting to be sent", "try again in a minute");
  return {};
}

void SmtpMailer::send_in_turn(const net::MailMessage& message, WallTime good_until) const {
  if (ending_) return;
  if (clock_.wall() > good_until) return log_warning("mail: dropped one that waited until it was of no use");
  if (auto sent = net::send_mail(server_, message); !sent) log_error(sent.error().message);
}

}  // namespace playfs::runtime
