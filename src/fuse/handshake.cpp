#include "fuse/handshake.h"

#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

#include "fuse/operations.h"

namespace playfs::fuse {

#if FUSE_VERSION < FUSE_MAKE_VERSION(3, 17)

namespace {

Context& context_of(void* user_data) { return *static_cast<Context*>(static_cast<InFlight*>(user_data)); }

ssize_t read_request(int fd, void* buffer, size_t size, void* user_data) {
  const ssize_t length = read(fd, buffer, size);
  fuse_in_header header;
  if (length >= static_cast<ssize_t>(sizeof header)) {
    std::memcpy(&header, buffer, sizeof header);
    if (header.opcode == FUSE_INIT) context_of(user_data).init_request = header.unique;
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
  init.flags |= FUSE_PARALLEL_DIROPS | FUSE_HANDLE_KILLPRIV_V2;
  const iovec completed[] = {pieces[0], {&init, sizeof init}};
  return writev(fd, completed, 2);
}

}  // namespace

Status complete_handshake(fuse_session* session) {
  const fuse_custom_io io{write_reply, read_request, nullptr, nullptr};
  if (int failed = fuse_session_custom_io(session, &io, fuse_session_fd(session)); failed != 0)
    return fail(error_from_errno(-failed, "hand libfuse its connection"));
  return {};
}

#else

Status complete_handshake(fuse_session*) { return {}; }

#endif

}  // namespace playfs::fuse
