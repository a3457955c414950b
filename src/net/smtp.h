// Sends one mail to one address over SMTP with libcurl. Blocks. Thread-safe: no shared state.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "net/mail_text.h"

namespace playfs::net {

struct SmtpServer {
  std::string url;   ///< "smtp://mail.example.org:587" or "smtps://…"
  std::string user;  ///< empty: no authentication
  std::string password;
  std::string from;     ///< the sender's address
  std::string ca_file;  ///< private certificate authority, PEM; empty: the system's
  bool plain = false;   ///< allow a connection without TLS, for a local mail server
  std::chrono::seconds limit{60};
};

/// Errors: invalid_argument for a line break in an address or subject; unreachable; timed_out; unauthorized; io with
/// the server's reply.
Status send_mail(const SmtpServer& server, const MailMessage& message);

}  // namespace playfs::net
