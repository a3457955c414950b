// How the service sends mail. Implementations are thread-safe.
#pragma once

#include <string>

#include "base/result.h"

namespace playfs::service {

struct Mail {
  std::string to;  ///< one address, without line breaks
  std::string subject;
  std::string text;
};

class Mailer {
 public:
  virtual ~Mailer() = default;
  /// Accepts the mail for delivery, which may still fail later. Must not wait for another machine.
  [[nodiscard]] virtual Status send(const Mail& mail) = 0;
};

}  // namespace playfs::service
