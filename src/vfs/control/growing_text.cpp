#include "vfs/control/growing_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace playfs::vfs {

Status GrowingText::move_to_file() {
  PLAYFS_CHECK(make_private_directory(directory_));
  std::string path = directory_ + "/.growing.XXXXXX";
  UniqueFd file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file) return fail(error_from_errno(errno, "create " + path));
  ::unlink(path.c_str());
  PLAYFS_CHECK(write_all_at(file.get(), short_, 0));
  file_ = std::move(file);
  short_ = std::string();
  return {};
}

Status GrowingText::append(std::string_view more) {
  if (!file_ && size_ + more.size() > kInMemory) PLAYFS_CHECK(move_to_file());
  if (file_) PLAYFS_CHECK(write_all_at(file_.get(), more, size_));
  else short_ += more;
  size_ += more.size();
  return {};
}

Result<std::string> GrowingText::read(std::uint64_t offset, std::size_t size) const {
  if (offset >= size_) return std::string();
  if (!file_) return short_.substr(offset, size);
  return read_at(file_.get(), offset, std::min<std::uint64_t>(size, size_ - offset));
}

}  // namespace playfs::vfs
