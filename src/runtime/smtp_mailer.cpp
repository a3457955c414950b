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
  thread_.post([this, message = std::move(message)] {
    if (auto sent = net::send_mail(server_, message); !sent) log_error(sent.error().message);
  });
  return {};
}

}  // namespace playfs::runtime
