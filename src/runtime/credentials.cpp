#include "runtime/credentials.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <sstream>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/shell.h"
#include "base/text.h"
#include "runtime/secret_file.h"
#include "runtime/toml_table.h"

namespace playfs::runtime {

namespace {

constexpr std::size_t kLargestFile = 1 << 20;
constexpr std::string_view kFile = "credentials.toml";
constexpr std::string_view kNewFile = "credentials.toml.new";
/// Changes take milliseconds; only a stopped process holds the lock longer.
constexpr std::chrono::seconds kLongestChange{10};

/// The file's text, after a check that only the user can read or replace it; "" if there is no file.
Result<std::string> read_private(const Places& places, std::string_view name = kFile) {
  const std::string path = places.config + "/" + std::string(name);
  UniqueFd directory(open(places.config.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    if (errno == ENOENT) return std::string();
    return fail(error_from_errno(errno, "open " + places.config));
  }
  struct stat attributes {};
  if (fstat(directory.get(), &attributes) != 0) return fail(error_from_errno(errno, "stat " + places.config));
  if (attributes.st_uid != geteuid() || (attributes.st_mode & 022) != 0)
    return fail(ErrorCode::permission_denied, places.config + " is writable by others, so its credentials are not used",
                "chmod 700 " + shell_word(places.config));

  UniqueFd file(openat(directory.get(), name.data(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return std::string();
    if (errno == ELOOP)
      return fail(ErrorCode::permission_denied, path + " is a symbolic link; credentials must be in a regular file",
                  "rm " + shell_word(path));
    return fail(error_from_errno(errno, "open " + path));
  }
  return read_open_secret(file.get(), path, path, kLargestFile);
}

/// Creates the directory if it is missing. One that is there may be a link, as people do with their settings.
Status make_directory(const Places& places) {
  if (access(places.config.c_str(), F_OK) == 0) return {};
  return make_private_directory(places.config);
}

/// Two processes that change the file would each drop the other's change. Held while the descriptor is open. A lock on
/// the file itself would not do, since each change replaces the file.
Result<UniqueFd> lock_out_others(const Places& places) {
  PLAYFS_CHECK(make_directory(places));
  const std::string path = places.config + "/credentials.lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail(error_from_errno(errno, "open " + path));
  const auto deadline = std::chrono::steady_clock::now() + kLongestChange;
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail(error_from_errno(errno, "lock " + path));
    if (std::chrono::steady_clock::now() > deadline)
      return fail(ErrorCode::busy, "another process is changing " + credentials_path(places),
                  "end that playfs process, then repeat the command");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return fd;
}

std::string new_path(const Places& places) { return places.config + "/" + std::string(kNewFile); }

/// Like write_file_atomically(), but always with the same temporary name: a process that dies in between leaves a file
/// with keys, which the next change then removes. REQUIRES: the lock is held.
Status replace_file(const Places& places, const std::string& text) {
  const std::string path = new_path(places);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return fail(error_from_errno(errno, "remove " + path));
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return fail(error_from_errno(errno, "create " + path));
  Status written = write_all(fd.get(), text);
  if (written && fsync(fd.get()) != 0) written = fail(error_from_errno(errno, "fsync " + path));
  if (written && rename(path.c_str(), credentials_path(places).c_str()) != 0)
    written = fail(error_from_errno(errno, "rename to " + credentials_path(places)));
  if (!written) {
    unlink(path.c_str());
    return written;
  }
  return sync_directory(places.config);
}

std::string text_of(const toml::table& fields, std::string_view name) {
  const toml::node* value = fields.get(name);
  auto text = value != nullptr ? value->value_exact<std::string>() : std::nullopt;
  return text.value_or("");
}

void add_values(const toml::node& node, std::vector<std::string>& values) {
  if (const toml::table* table = node.as_table()) {
    for (auto&& [key, each] : *table) add_values(each, values);
  } else if (const toml::array* array = node.as_array()) {
    for (const toml::node& each : *array) add_values(each, values);
  } else if (auto text = node.value<std::string>()) {
    values.push_back(*std::move(text));
  } else if (auto number = node.value_exact<std::int64_t>()) {
    values.push_back(std::to_string(*number));
  }
}

/// Of a damaged file: each line's part behind "=", or the whole line, and what stands between quotes in it.
void add_parts(const std::string& text, std::vector<std::string>& values) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    std::istringstream parts(equals == std::string::npos ? line : line.substr(equals + 1));
    std::string part;
    for (char c; parts.get(c);) {
      const bool is_end = std::string_view("\"'#").find(c) != std::string_view::npos;
      if (!is_end) part += c;
      if (!is_end && parts.peek() != std::istringstream::traits_type::eof()) continue;
      if (part.find_first_of(kLetters) != std::string::npos) values.emplace_back(trim(part, " \t\r,[]{}"));
      part.clear();
    }
  }
}

}  // namespace

std::string credentials_path(const Places& places) { return places.config + "/" + std::string(kFile); }

Result<std::optional<Login>> login_at(const Source& source, const Places& places) {
  if (!source.may_carry_credentials()) return std::optional<Login>();
  PLAYFS_TRY(std::string text, read_private(places));
  PLAYFS_TRY(toml::table document, parse_secret_toml(text, credentials_path(places)));
  const toml::table* fields = document[source.origin].as_table();
  if (fields == nullptr) return std::optional<Login>();
  Login login{text_of(*fields, "api_key"), text_of(*fields, "email"), text_of(*fields, "agent")};
  return login.api_key.empty() ? std::optional<Login>() : std::optional(std::move(login));
}

Status prepare_to_store(const Places& places) {
  PLAYFS_TRY(UniqueFd lock, lock_out_others(places));
  PLAYFS_TRY(std::string text, read_private(places));
  PLAYFS_CHECK(parse_secret_toml(text, credentials_path(places)));
  return {};
}

Status store_login(const Source& source, const Places& places, const Login& login) {
  PLAYFS_TRY(UniqueFd lock, lock_out_others(places));
  PLAYFS_TRY(std::string text, read_private(places));
  PLAYFS_TRY(toml::table document, parse_secret_toml(text, credentials_path(places)));
  toml::table entry;
  if (const toml::table* present = document[source.origin].as_table()) entry = *present;
  const std::pair<const char*, const std::string&> fields[] = {
      {"api_key", login.api_key}, {"email", login.email}, {"agent", login.agent}};
  for (const auto& [name, value] : fields) {
    if (value.empty()) entry.erase(name);
    else entry.insert_or_assign(name, value);
  }
  return replace_file(places, with_toml_table(text, source.origin, entry));
}

Result<bool> forget_login(const Source& source, const Places& places) {
  if (access(places.config.c_str(), F_OK) != 0 && errno == ENOENT) return false;
  PLAYFS_TRY(UniqueFd lock, lock_out_others(places));
  PLAYFS_TRY(std::string text, read_private(places));
  PLAYFS_TRY(toml::table document, parse_secret_toml(text, credentials_path(places)));
  // The key may be in there too.
  if (unlink(new_path(places).c_str()) != 0 && errno != ENOENT)
    return fail(error_from_errno(errno, "remove " + new_path(places)));
  if (!document.contains(source.origin)) return false;
  PLAYFS_CHECK(replace_file(places, with_toml_table(text, source.origin, std::nullopt)));
  return true;
}

Result<std::vector<std::string>> kept_secrets(const Places& places) {
  std::vector<std::string> values;
  for (const std::string_view name : {kFile, kNewFile}) {
    PLAYFS_TRY(const std::string text, read_private(places, name));
    if (auto document = parse_secret_toml(text, credentials_path(places))) add_values(*document, values);
    else add_parts(text, values);
  }
  return values;
}

}  // namespace playfs::runtime
