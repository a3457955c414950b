#include "fuse/handshake.h"

#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <string>

#include "base/fd.h"

#include "fuse/operations.h"

namespace playfs::fuse {

unsigned request_limit_of_kernel() {
  auto setting = [](const char* name) -> unsigned {
    auto text = read_file(std::string("/proc/sys/fs/fuse/") + name, 64);
    unsigned value = 0;
    if (text) std::from_chars(text->data(), text->data() + text->size(), value);
    return value;
  };
  const unsigned usual = setting("default_request_timeout"), most = setting("max_request_timeout");
  const unsigned limit = usual > 0 && most > 0 ? std::min(usual, most) : std::max(usual, most);
  return std::min<unsigned>(limit, std::numeric_limits<std::uint16_t>::max());
}

void ask_newer_libfuse([[maybe_unused]] fuse_conn_info& connection, [[maybe_unused]] unsigned request_limit_s) {
#ifdef FUSE_CAP_HANDLE_KILLPRIV_V2
  connection.want |= connection.capable & static_cast<unsigned>(FUSE_CAP_HANDLE_KILLPRIV_V2);
#endif
#ifdef FUSE_CAP_OVER_IO_URING
  // Or FUSE_URING_ENABLE in the environment would bring it, and with it requests that are never answered (README.md).
  connection.want &= ~static_cast<unsigned>(FUSE_CAP_OVER_IO_URING);
#endif
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 18)
  // Pins the limit that we keep to, even if the administrator changes it later.
  connection.request_timeout = static_cast<std::uint16_t>(request_limit_s);
#endif
}

#if FUSE_VERSION < FUSE_MAKE_VERSION(3, 17)

namespace {

SessionContext& context_of(void* user_data) { return *static_cast<SessionContext*>(static_cast<InFlight*>(user_data)); }

// Since Linux 6.15, missing from older headers: bit 42 of the flags, and 16 bits after max_stack_depth.
constexpr std::uint32_t kRequestTimeout = 1U << (42 - 32);

ssize_t read_request(int fd, void* buffer, size_t size, void* user_data) {
  const ssize_t length = read(fd, buffer, size);
  fuse_in_header header;
  if (length >= static_cast<ssize_t>(sizeof header)) {
    std::memcpy(&header, buffer, sizeof header);
    if (header.opcode == FUSE_INIT) {
      fuse_init_in init{};
      std::memcpy(&init, static_cast<const char*>(buffer) + sizeof header,
                  std::min(sizeof init, static_cast<std::size_t>(length) - sizeof header));
      context_of(user_data).takes_limit = (init.flags & FUSE_INIT_EXT) != 0 && (init.flags2 & kRequestTimeout) != 0;
      context_of(user_data).init_request = header.unique;
    }
  }
  return length;
}

ssize_t write_reply(int fd, iovec* pieces, int count, void* user_data) {
  fuse_out_header header;
  fuse_init_out init;
  if (count != 2 || pieces[0].iov_len != sizeof header || pieces[1].iov_len != sizeof init)
    return writev(fd, pieces, count);
  std::memcpy(&header, pieces[0].iov_base, sizeof header);
  if (header.error != 0 || header.unique == 0 || header.unique != context_of(user_data).init_request)
    return writev(fd, pieces, count);
  context_of(user_data).init_request = 0;
  std::memcpy(&init, pieces[1].iov_base, sizeof init);
  const SessionContext& context = context_of(user_data);
  if (context.takes_limit && context.request_limit_s > 0) {
    // Pins the limit that we keep to, even if the administrator changes it later.
    init.flags |= FUSE_INIT_EXT;
    init.flags2 |= kRequestTimeout;
    init.unused[1] = context.request_limit_s;
  }
  init.flags |= FUSE_PARALLEL_DIROPS | FUSE_HANDLE_KILLPRIV_V2;
  const iovec completed[] = {pieces[0], {&init, sizeof init}};
  return writev(fd, completed, 2);
}

}  // namespace

Status complete_handshake(fuse_session* session) {
  const fuse_custom_io io{write_reply, read_request, nullptr, nullptr};
  if (int failed = fuse_session_custom_io(session, &io, fuse_session_fd(session)); failed != 0)
    return fail(error_from_errno(-failed, "pass the connection to libfuse"));
  return {};
}

#else

Status complete_handshake(fuse_session*) { return {}; }

#endif

}  // namespace playfs::fuse
