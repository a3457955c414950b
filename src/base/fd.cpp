#include "base/fd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/private_place.h"

namespace playfs {

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) close(fd_);
}

Status write_all_at(int fd, std::string_view data, std::uint64_t offset) {
  while (!data.empty()) {
    ssize_t written = pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      return fail(error_from_errno(errno, "write"));
    }
    data.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Status write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    ssize_t written = write(fd, data.data(), data.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return fail(error_from_errno(errno, "write"));
    }
    data.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<std::string> read_at(int fd, std::uint64_t offset, std::size_t size) {
  std::string data(size, '\0');
  std::size_t filled = 0;
  while (filled < size) {
    ssize_t got = pread(fd, data.data() + filled, size - filled, static_cast<off_t>(offset + filled));
    if (got < 0) {
      if (errno == EINTR) continue;
      return fail(error_from_errno(errno, "read"));
    }
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  data.resize(filled);
  return data;
}

Result<std::string> read_file(const std::string& path, std::size_t ceiling) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(error_from_errno(errno, "open " + path));
  struct stat attributes {};
  if (fstat(fd.get(), &attributes) != 0) return fail(error_from_errno(errno, "stat " + path));
  // Files in /proc and in our own control directory may report size 0, so read until end of file.
  std::string data;
  for (;;) {
    constexpr std::size_t step = 1 << 20;
    std::size_t want = data.empty() && attributes.st_size > 0 ? static_cast<std::size_t>(attributes.st_size) + 1 : step;
    PLAYFS_TRY(std::string piece, read_at(fd.get(), data.size(), std::min(want, ceiling + 1 - data.size())));
    bool at_end = piece.size() < std::min(want, ceiling + 1 - data.size());
    data += piece;
    if (data.size() > ceiling)
      return fail(ErrorCode::file_too_big, path + " is larger than " + std::to_string(ceiling) + " bytes");
    if (at_end) return data;
  }
}

Status sync_directory(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail(error_from_errno(errno, "open " + path));
  if (fsync(fd.get()) != 0) return fail(error_from_errno(errno, "fsync " + path));
  return {};
}

Status write_file_atomically(const std::string& path, std::string_view data, unsigned mode) {
  std::string beside = path + ".XXXXXX";
  UniqueFd fd(mkostemp(beside.data(), O_CLOEXEC));
  if (!fd) return fail(error_from_errno(errno, "create " + beside));
  auto written = [&]() -> Status {
    if (fchmod(fd.get(), mode) != 0) return fail(error_from_errno(errno, "chmod " + beside));
    PLAYFS_CHECK(write_all(fd.get(), data));
    if (fsync(fd.get()) != 0) return fail(error_from_errno(errno, "fsync " + beside));
    if (rename(beside.c_str(), path.c_str()) != 0) return fail(error_from_errno(errno, "rename to " + path));
    return {};
  }();
  if (!written) {
    unlink(beside.c_str());
    return written;
  }
  auto slash = path.rfind('/');
  return sync_directory(slash == std::string::npos ? "." : path.substr(0, slash + 1));
}

Status make_private_directory(const std::string& path) { return make_private_directory_below(path, path); }

}  // namespace playfs
