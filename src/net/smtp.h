// One mail to one address over SMTP, through libcurl. For a thread that may wait. Thread-safe: nothing is shared.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "net/mail_text.h"

namespace playfs::net {

struct SmtpServer {
  std::string url;   ///< "smtp://mail.example.org:587" or "smtps://…"
  std::string user;  ///< empty: without signing in
  std::string password;
  std::string from;     ///< the sender's address
  std::string ca_file;  ///< own certificate authority, PEM; empty: the system's
  bool plain = false;   ///< allow a connection without TLS, for a mail server on this machine
  std::chrono::seconds limit{60};
};

/// Errors: invalid_argument for a line break in an address or a subject; unreachable, timed_out; unauthorized; io with
/// what the server said.
Status send_mail(const SmtpServer& server, const MailMessage& message);

}  // namespace playfs::net
