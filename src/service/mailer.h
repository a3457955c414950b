// How the service sends mail. Implementations are thread-safe.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace playfs::service {

struct Mail {
  std::string to;  ///< one address, without line breaks
  std::string subject;
  std::string text;
  std::string client;   ///< on whose request: clients take turns
  WallTime good_until;  ///< of no use afterwards, and not sent
};

class Mailer {
 public:
  virtual ~Mailer() = default;
  /// Accepts the mail for delivery, which may still fail later; `busy` if too many are waiting. Must not wait for
  /// another machine.
  [[nodiscard]] virtual Status send(const Mail& mail) = 0;
};

}  // namespace playfs::service
