// Appends mail to a file that the operator reads, for a service without a mail server. Thread-safe.
#pragma once

#include <string>

#include "service/mailer.h"

namespace playfs::service {

class Outbox final : public Mailer {
 public:
  /// Created with mode 0600 by the first mail. Each mail is appended in one write.
  explicit Outbox(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] Status send(const Mail& mail) override;

 private:
  const std::string path_;
};

}  // namespace playfs::service
