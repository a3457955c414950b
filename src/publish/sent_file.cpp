#include "publish/sent_file.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/fd.h"
#include "model/content_hash.h"

namespace playfs::publish {

namespace {

constexpr std::size_t kMostBytes = 4096;

std::string path_of(const std::string& database) { return database + "-sent"; }

/// One line: number, tx, and the hash of both.
std::string text_of(const Sent& sent) {
  const std::string said = std::to_string(sent.number) + " " + sent.tx;
  return said + " " + ContentHash::of(said).hex() + "\n";
}

}  // namespace

Status write_sent(const std::string& database, const Sent& sent) {
  return write_file_atomically(path_of(database), text_of(sent));
}

Result<std::optional<Sent>> read_sent(const std::string& database) {
  const std::string path = path_of(database);
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::optional<Sent>();
  auto text = read_file(path, kMostBytes);
  if (!text && text.error().code == ErrorCode::file_too_big) return std::optional<Sent>();
  if (!text) return fail(text.error());
  Sent sent;
  std::from_chars(text->data(), text->data() + text->size(), sent.number);
  const auto tx = text->find(' ') + 1;
  sent.tx = text->substr(tx, kTxDigits);
  return *text == text_of(sent) ? std::optional(std::move(sent)) : std::nullopt;
}

Status remove_sent(const std::string& database) {
  const std::string path = path_of(database);
  if (unlink(path.c_str()) == 0) return sync_directory(path.substr(0, path.rfind('/') + 1));
  return errno == ENOENT ? Status() : fail(error_from_errno(errno, "remove " + path));
}

}  // namespace playfs::publish
