#include "service/outbox.h"

#include <fcntl.h>

#include <cerrno>

#include "base/fd.h"

namespace playfs::service {

Status Outbox::send(const Mail& mail) {
  UniqueFd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail(error_from_errno(errno, "open " + path_));
  return write_all(file.get(), "To: " + mail.to + "\nSubject: " + mail.subject + "\n\n" + mail.text + "\n");
}

}  // namespace playfs::service
