#include "runtime/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/fd.h"

namespace playfs::runtime {

void tell_service_manager(const char* state) {
  const char* place = std::getenv("NOTIFY_SOCKET");
  const std::string_view path = place ? place : "";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() < 2 || path.size() >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) return;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';  // an abstract name
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  // Nobody is worse off if it fails: a manager that hears nothing waits, and says so.
  static_cast<void>(sendto(socket.get(), state, std::strlen(state), MSG_NOSIGNAL,
                           reinterpret_cast<const sockaddr*>(&address), length));
}

}  // namespace playfs::runtime
