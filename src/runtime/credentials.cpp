#include "runtime/credentials.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <toml++/toml.h>

#include "base/fd.h"
#include "runtime/secret_file.h"

namespace playfs::runtime {

namespace {

constexpr std::size_t kLargestFile = 1 << 20;

/// The file's text, after a check that only the user can read or replace it; "" if there is no file.
Result<std::string> read_private(const Places& places) {
  std::string path = credentials_path(places);
  UniqueFd directory(open(places.config.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    if (errno == ENOENT) return std::string();
    return fail(error_from_errno(errno, "open " + places.config));
  }
  struct stat attributes {};
  if (fstat(directory.get(), &attributes) != 0) return fail(error_from_errno(errno, "stat " + places.config));
  if (attributes.st_uid != geteuid() || (attributes.st_mode & 022) != 0)
    return fail(ErrorCode::permission_denied, places.config + " is writable by others, so its credentials are not used",
                "chmod 700 " + places.config);

  UniqueFd file(openat(directory.get(), "credentials.toml", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return std::string();
    if (errno == ELOOP)
      return fail(ErrorCode::permission_denied, path + " is a symbolic link; credentials must be in a regular file",
                  "rm " + path);
    return fail(error_from_errno(errno, "open " + path));
  }
  return read_open_secret(file.get(), path, path, kLargestFile);
}

}  // namespace

std::string credentials_path(const Places& places) { return places.config + "/credentials.toml"; }

Result<std::string> api_key_for(const Source& source, const Places& places) {
  if (!source.may_carry_credentials()) return std::string();
  PLAYFS_TRY(std::string text, read_private(places));
  try {
    toml::table document = toml::parse(text);
    auto key = document[source.origin]["api_key"].value_exact<std::string>();
    return key.value_or("");
  } catch (const toml::parse_error& error) {
    // The parser's message may quote the file, and with it a key.
    return fail(ErrorCode::invalid_argument,
                credentials_path(places) + ", line " + std::to_string(error.source().begin.line) + ": not valid TOML");
  }
}

}  // namespace playfs::runtime
