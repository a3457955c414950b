#include "stage/store/snapshots.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/text.h"
#include "stage/store/entry_codec.h"

namespace playfs::stage {

namespace {

namespace fs = std::filesystem;

// `list` is two blocks, each of kMagic, size and checksum of what follows, and row changes as in the operations log:
// values that head_of() reads alone, and the rest.
constexpr std::string_view kMagic = "playfs 1";
constexpr std::size_t kFrame = 24;
constexpr const char* kList = "/list";
constexpr std::size_t kLargestList = std::size_t{1} << 30;
/// Holds the first block: a message is at most a page.
constexpr std::size_t kFirstRead = 16 << 10;

void put_block(std::string& out, const std::string& bytes) {
  const std::uint64_t size = bytes.size(), checksum = XXH3_64bits(bytes.data(), bytes.size());
  out += kMagic;
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  out += bytes;
}

/// Takes a block off the front of `bytes`; nullopt if they do not start with a whole one.
std::optional<std::string_view> take_block(std::string_view& bytes) {
  if (bytes.size() < kFrame || !bytes.starts_with(kMagic)) return std::nullopt;
  std::uint64_t size = 0, checksum = 0;
  std::memcpy(&size, bytes.data() + 8, sizeof size);
  std::memcpy(&checksum, bytes.data() + 16, sizeof checksum);
  bytes.remove_prefix(kFrame);
  if (size > bytes.size()) return std::nullopt;
  const std::string_view block = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return XXH3_64bits(block.data(), block.size()) == checksum ? std::optional(block) : std::nullopt;
}

/// A clone, and thus this folder, may be a stranger's: nothing but a file is opened, and no link is followed.
UniqueFd open_file(int folder, const std::string& path) {
  UniqueFd file(openat(folder, path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  struct stat found {};
  return file && fstat(file.get(), &found) == 0 && S_ISREG(found.st_mode) ? std::move(file) : UniqueFd();
}

/// At most `most` bytes; "" if it cannot be read.
std::string text_of(const UniqueFd& file, std::size_t most) {
  struct stat found {};
  if (!file || fstat(file.get(), &found) != 0) return {};
  return read_at(file.get(), 0, std::min(most, static_cast<std::size_t>(found.st_size))).value_or("");
}

void put_value(std::string& block, const char* key, std::string value) {
  encode(block, PutValue{key, std::move(value)});
}

std::string encoded(const Snapshot& snapshot) {
  std::string head, body, list;
  put_value(head, "made", std::to_string(snapshot.head.made.nanoseconds));
  put_value(head, "base", snapshot.head.base.text());
  put_value(head, "paths", std::to_string(snapshot.head.paths));
  put_value(head, "bytes", std::to_string(snapshot.head.bytes));
  put_value(head, "message", snapshot.head.message);
  for (const RevisionId& parent : snapshot.parents) put_value(body, "parent", parent.text());
  put_value(body, "tracked", encode_tracked(snapshot.tracked));
  put_value(body, "conflicted", encode_conflicted(snapshot.conflicted));
  if (snapshot.state) put_value(body, "state", *snapshot.state);
  for (const std::string& path : snapshot.concealed) put_value(body, "concealed", path);
  for (const auto& [path, bits] : snapshot.permissions)
    put_value(body, "permissions", std::to_string(bits) + ' ' + path);
  for (const auto& [path, content] : snapshot.base_contents) put_value(body, "base_content", content + ' ' + path);
  for (const auto& [path, file] : snapshot.files) {
    // A rescued row precedes the file that it is about.
    if (auto at = snapshot.published.find(path); at != snapshot.published.end()) encode(body, PutRescued{at->second});
    encode(body, PutPending{file});
  }
  for (const std::string& path : snapshot.deletions) encode(body, PutPendingDeletion{path});
  put_block(list, head);
  put_block(list, body);
  return list;
}

bool take_head(std::string_view block, Checkpoint& head) {
  while (!block.empty()) {
    auto change = decode(block);
    const auto* value = change ? std::get_if<PutValue>(&*change) : nullptr;
    if (!value) return false;
    if (!is_valid_utf8(value->value)) return false;
    if (value->key == "made") head.made = {parse_number<std::int64_t>(value->value).value_or(0)};
    if (value->key == "base") head.base = RevisionId(value->value);
    if (value->key == "paths") head.paths = parse_number<std::uint64_t>(value->value).value_or(0);
    if (value->key == "bytes") head.bytes = parse_number<std::uint64_t>(value->value).value_or(0);
    if (value->key == "message") head.message = value->value;
  }
  return true;
}

bool take_value(const PutValue& value, Snapshot& snapshot) {
  if (value.key == "parent") snapshot.parents.emplace_back(value.value);
  if (value.key == "state") snapshot.state = value.value;
  if (value.key == "concealed") snapshot.concealed.insert(value.value);
  if (value.key == "base_content" || value.key == "permissions") {
    const std::size_t end = value.value.find(' ');
    if (end == std::string::npos) return false;
    std::string word = value.value.substr(0, end), path = value.value.substr(end + 1);
    if (value.key == "base_content") snapshot.base_contents.emplace(std::move(path), std::move(word));
    else snapshot.permissions.emplace(std::move(path), parse_number<unsigned>(word).value_or(0600) & 0777);
  }
  if (value.key == "tracked") {
    auto tracked = decode_tracked(value.value);
    if (!tracked) return false;
    snapshot.tracked = *std::move(tracked);
  }
  if (value.key == "conflicted") {
    auto conflicted = decode_conflicted(value.value);
    if (!conflicted) return false;
    snapshot.conflicted = *std::move(conflicted);
  }
  return true;
}

bool take_body(std::string_view block, Snapshot& snapshot) {
  std::optional<RescuedRow> rescued;
  while (!block.empty()) {
    auto change = decode(block);
    if (!change) return false;
    if (auto* value = std::get_if<PutValue>(&*change)) {
      if (!take_value(*value, snapshot)) return false;
    } else if (auto* row = std::get_if<PutRescued>(&*change)) {
      rescued = std::move(row->row);
    } else if (auto* file = std::get_if<PutPending>(&*change)) {
      if (file->file.published.has_value() != rescued.has_value() || !TreePath::parse(file->file.path)) return false;
      std::string path = file->file.path;
      if (rescued) snapshot.published.emplace(path, *std::exchange(rescued, {}));
      snapshot.files.emplace(std::move(path), std::move(file->file));
    } else if (auto* deletion = std::get_if<PutPendingDeletion>(&*change)) {
      if (!TreePath::parse(deletion->path)) return false;
      snapshot.deletions.insert(std::move(deletion->path));
    } else {
      return false;
    }
  }
  return true;
}

Error damaged(std::uint64_t id, const std::string& what) {
  return Error{ErrorCode::corrupt, "checkpoint " + std::to_string(id) + " is damaged: " + what,
               "playfs checkpoint list, for another one"};
}

void remove_all(const std::string& path) noexcept {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

}  // namespace

bool Snapshots::is_there() const {
  struct stat found {};
  return lstat(path_.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

std::vector<std::uint64_t> Snapshots::ids(bool dropped) const {
  std::vector<std::uint64_t> found;
  if (!is_there()) return found;
  std::error_code problem;
  for (fs::directory_iterator entry(path_, problem), end; !problem && entry != end; entry.increment(problem)) {
    std::string name = entry->path().filename();
    if (dropped && name.ends_with('~')) name.pop_back();
    if (auto id = parse_number<std::uint64_t>(name); id && std::to_string(*id) == name) found.push_back(*id);
  }
  std::sort(found.begin(), found.end());
  return found;
}

Checkpoint Snapshots::head_of(std::uint64_t id) const {
  Checkpoint head;
  head.id = id;
  const std::string bytes = text_of(open_file(AT_FDCWD, folder_of(id) + kList), kFirstRead);
  std::string_view rest = bytes;
  const auto block = take_block(rest);
  if (!block || !take_head(*block, head)) head.damage = damaged(id, "its list cannot be read");
  return head;
}

std::vector<Checkpoint> Snapshots::list() const {
  std::vector<Checkpoint> all;
  for (const std::uint64_t id : ids()) all.push_back(head_of(id));
  std::reverse(all.begin(), all.end());
  return all;
}

Result<Snapshot> Snapshots::read(std::uint64_t id) const {
  Snapshot snapshot;
  snapshot.head.id = id;
  if (!is_there() || access(folder_of(id).c_str(), F_OK) != 0)
    return fail(ErrorCode::not_found, "there is no checkpoint " + std::to_string(id), "playfs checkpoint list");
  const std::string bytes = text_of(open_file(AT_FDCWD, folder_of(id) + kList), kLargestList);
  std::string_view rest = bytes;
  const auto head = take_block(rest), body = take_block(rest);
  if (!head || !body || !take_head(*head, snapshot.head) || !take_body(*body, snapshot))
    return fail(damaged(id, "its list cannot be read"));
  return snapshot;
}

Result<UniqueFd> Snapshots::open(std::uint64_t id) const {
  UniqueFd folder(::open(folder_of(id).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!folder) return fail(error_from_errno(errno, "open " + folder_of(id)));
  return folder;
}

Result<UniqueFd> Snapshots::open_bytes(const UniqueFd& folder, const Snapshot& snapshot, const FrozenFile& file) {
  UniqueFd bytes = open_file(folder.get(), std::to_string(file.spool));
  struct stat found {};
  const bool is_whole =
      bytes && fstat(bytes.get(), &found) == 0 && static_cast<std::uint64_t>(found.st_size) == file.size;
  if (!is_whole) return fail(damaged(snapshot.head.id, "the bytes of " + file.path + " are missing or truncated"));
  return bytes;
}

Status Snapshots::check(const Snapshot& snapshot) const {
  PLAYFS_TRY(const UniqueFd folder, open(snapshot.head.id));
  for (const auto& [path, file] : snapshot.files)
    if (file.spool != 0) PLAYFS_CHECK(open_bytes(folder, snapshot, file));
  return {};
}

Result<UniqueFd> Snapshots::begin() const {
  PLAYFS_CHECK(make_private_directory(path_));
  remove_all(unfinished());
  if (mkdir(unfinished().c_str(), 0700) != 0) return fail(error_from_errno(errno, "create " + unfinished()));
  UniqueFd folder(::open(unfinished().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!folder) return fail(error_from_errno(errno, "open " + unfinished()));
  return folder;
}

Result<Checkpoint> Snapshots::finish(const UniqueFd& folder, Snapshot snapshot) const {
  const std::string path = unfinished() + kList;
  {
    const UniqueFd list(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!list) return fail(error_from_errno(errno, "create " + path));
    PLAYFS_CHECK(write_all(list.get(), encoded(snapshot)));
    if (fsync(list.get()) != 0) return fail(error_from_errno(errno, "sync " + path));
  }
  if (fsync(folder.get()) != 0) return fail(error_from_errno(errno, "sync " + unfinished()));
  const auto before = ids(true);
  snapshot.head.id = before.empty() ? 1 : before.back() + 1;
  const std::string name = folder_of(snapshot.head.id);
  if (std::rename(unfinished().c_str(), name.c_str()) != 0) return fail(error_from_errno(errno, "create " + name));
  PLAYFS_CHECK(sync_directory(path_));
  return std::move(snapshot.head);
}

void Snapshots::abandon() const noexcept {
  if (is_there()) remove_all(unfinished());
}

void Snapshots::drop_old(WallTime now, std::uint64_t used) const {
  auto all = ids();
  std::size_t left = all.size();
  if (!all.empty()) all.pop_back();
  for (const std::uint64_t id : all) {
    const Checkpoint head = head_of(id);
    const bool is_old = !head.damage && head.made.nanoseconds < now.nanoseconds - kLongest.count();
    if (left <= kMost && !is_old) break;  // and so are all later ones
    // If this fails it is tried again with the next one.
    if (id != used && drop(id)) --left;
  }
}

Status Snapshots::drop(std::uint64_t id) const {
  const std::string name = folder_of(id);
  if (std::rename(name.c_str(), (name + '~').c_str()) == 0) return {};
  return fail(error_from_errno(errno, "drop " + name));
}

void Snapshots::remove_dropped() const noexcept {
  if (!is_there()) return;
  std::error_code problem;
  std::vector<std::string> dropped;
  for (fs::directory_iterator entry(path_, problem), end; !problem && entry != end; entry.increment(problem))
    if (std::string path = entry->path(); path.ends_with('~')) dropped.push_back(std::move(path));
  const auto all = ids(true);
  for (const std::string& path : dropped) {
    if (!all.empty() && path == folder_of(all.back()) + '~') {
      for (fs::directory_iterator entry(path, problem), end; !problem && entry != end; entry.increment(problem))
        remove_all(entry->path());
    } else {
      remove_all(path);
    }
  }
}

}  // namespace playfs::stage
