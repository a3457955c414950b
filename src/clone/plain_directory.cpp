#include "clone/plain_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>

#include "base/beneath.h"
#include "clone/names.h"

namespace playfs::clone {

namespace {

// Below the state folder.
constexpr const char* kPrepared = "new";
constexpr const char* kLostFound = "../lost+found";  // from there
/// What is taken out of the directory is called NUMBER-INODE.out-NAME: INODE is that of what was put in its place.
constexpr std::string_view kTakenOut = ".out-";
constexpr std::size_t kMostOfName = 180;
/// How often to put back what an editor saves meanwhile.
constexpr int kPutBacks = 8;

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

int rename_within(int from, const std::string& name, int to, const std::string& new_name, unsigned flags) {
  return static_cast<int>(syscall(SYS_renameat2, from, name.c_str(), to, new_name.c_str(), flags));
}

/// File systems without exchanging or "only if absent" (NFS, some FUSE) refuse the flag.
bool is_unknown_flag(int error) { return error == EINVAL || error == ENOSYS; }

std::string name_of_taken_out(const std::string& number, ino_t put, const std::string& name) {
  return number + "-" + std::to_string(put) + std::string(kTakenOut) + name.substr(0, kMostOfName);
}

/// Whether playfs wrote the file, in this command or in one that was killed, so that it can be removed.
bool is_own(int folder, const std::string& taken_out) {
  struct stat info {};
  const std::size_t begin = taken_out.find('-') + 1, end = taken_out.find(kTakenOut);
  return fstatat(folder, taken_out.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         std::to_string(info.st_ino) == taken_out.substr(begin, end - begin);
}

std::optional<Signature> signature_at(int directory, const std::string& name) {
  struct stat info {};
  if (fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return signature_of(info);
}

/// Applies `may_go` to what lies at `name`. A directory never may.
Result<bool> may_go_at(int directory, const std::string& name, const PlainDirectory::MayGo& may_go) {
  struct stat info {};
  if (fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (is_not_there(errno)) return may_go(std::nullopt, -1);
    return fail(error_from_errno(errno, "stat " + name));
  }
  if (S_ISDIR(info.st_mode)) return false;
  UniqueFd file;
  if (S_ISREG(info.st_mode)) {
    file = UniqueFd(openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file) return false;  // it cannot be examined
  }
  return may_go(info, file.get());
}

}  // namespace

Result<PlainDirectory> PlainDirectory::open(const std::string& path) {
  UniqueFd root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return fail(error_from_errno(errno, "open " + path));
  UniqueFd state(openat(root.get(), kStateFolder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!state) return fail(error_from_errno(errno, "open " + path + "/" + kStateFolder));
  if (mkdirat(state.get(), kPrepared, 0700) != 0 && errno != EEXIST)
    return fail(error_from_errno(errno, "create a directory in " + path + "/" + kStateFolder));
  UniqueFd folder(openat(state.get(), kPrepared, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return fail(error_from_errno(errno, "open a directory in " + path + "/" + kStateFolder));
  PlainDirectory opened(path, std::move(root), std::move(folder));
  PLAYFS_CHECK(opened.keep_what_was_left());
  return opened;
}

Status PlainDirectory::keep_what_was_left() const {
  PLAYFS_TRY(const auto left, names(folder_.get(), path_ + "/" + kStateFolder));
  for (const Name& name : left) {
    if (name.text.find(kTakenOut) == std::string::npos) continue;
    if (!is_own(folder_.get(), name.text)) PLAYFS_CHECK(keep(name.text));
    else if (unlinkat(folder_.get(), name.text.c_str(), 0) != 0) return fail(error(errno, "clean up", kStateFolder));
  }
  return {};
}

Status PlainDirectory::keep(const std::string& taken_out) const {
  PLAYFS_TRY(const std::int64_t time, now());
  if (mkdirat(folder_.get(), kLostFound, 0700) != 0 && errno != EEXIST)
    return fail(error(errno, "create a directory in", kStateFolder));
  const std::string number = taken_out.substr(0, taken_out.find('-'));
  const std::string name = taken_out.substr(taken_out.find(kTakenOut) + kTakenOut.size());
  const std::string kept = std::to_string(time) + "-" + number + "-" + name;
  if (renameat(folder_.get(), taken_out.c_str(), folder_.get(), joined(kLostFound, kept).c_str()) != 0)
    return fail(error(errno, "keep a file in", kStateFolder));
  kept_.push_back(std::string(kKeptIn) + "/" + kept);
  return {};
}

Result<std::vector<std::string>> PlainDirectory::lost_and_found() const {
  std::vector<std::string> found;
  PLAYFS_TRY(auto opened, directory(kKeptIn));
  if (!opened) return found;
  PLAYFS_TRY(const auto kept, names(opened->get(), kKeptIn));
  for (const Name& name : kept)
    if (name.text != ".git") found.push_back(std::string(kKeptIn) + "/" + name.text);  // git_guard.h
  return found;
}

Error PlainDirectory::error(int number, const char* what, const std::string& path) const {
  return error_from_errno(number, std::string(what) + " " + path_ + (path.empty() ? "" : "/" + path));
}

Result<std::int64_t> PlainDirectory::now() const {
  struct stat info {};
  if (futimens(folder_.get(), nullptr) != 0 || fstat(folder_.get(), &info) != 0)
    return fail(error(errno, "touch a directory in", kStateFolder));
  return nanoseconds(info.st_mtim);
}

Status PlainDirectory::sync() const {
  if (syncfs(root_.get()) != 0) return fail(error(errno, "sync", ""));
  return {};
}

Result<std::optional<UniqueFd>> PlainDirectory::directory(const std::string& path) const {
  UniqueFd fd(open_beneath(root_.get(), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) return std::optional(std::move(fd));
  if (is_not_there(errno)) return std::optional<UniqueFd>();
  return fail(error(errno, "open", path));
}

Result<std::vector<Name>> PlainDirectory::names(int directory, const std::string& path) {
  UniqueFd own(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, CloseDirectory> stream(own ? fdopendir(own.get()) : nullptr);
  if (!stream) return fail(error_from_errno(errno, "list " + path));
  static_cast<void>(own.release());
  std::vector<Name> names;
  for (;;) {
    errno = 0;
    const dirent* item = readdir(stream.get());
    // A name missing from a partial listing would be taken for deleted.
    if (!item && errno != 0) return fail(error_from_errno(errno, "list " + path));
    if (!item) break;
    const std::string_view name = item->d_name;
    if (name == "." || name == "..") continue;
    unsigned char type = item->d_type;
    if (struct stat info{}; type == DT_UNKNOWN && fstatat(directory, item->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0)
      type = IFTODT(info.st_mode);
    names.push_back({std::string(name), type == DT_DIR, type != DT_DIR && type != DT_REG && type != DT_LNK});
  }
  std::sort(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.text < b.text; });
  return names;
}

Result<std::optional<PlainDirectory::Place>> PlainDirectory::place_of(const std::string& path) const {
  PLAYFS_TRY(auto in, directory(directory_of(path)));
  if (!in) return std::optional<Place>();
  return std::optional(Place{std::move(*in), name_of(path)});
}

Result<std::optional<struct stat>> PlainDirectory::look(const std::string& path) const {
  PLAYFS_TRY(auto place, place_of(path));
  struct stat info {};
  if (!place) return std::optional<struct stat>();
  if (fstatat(place->directory.get(), place->name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) return std::optional(info);
  if (is_not_there(errno)) return std::optional<struct stat>();
  return fail(error(errno, "stat", path));
}

Result<std::optional<UniqueFd>> PlainDirectory::open_file(const std::string& path) const {
  UniqueFd file(open_beneath(root_.get(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  if (!file && is_not_there(errno)) return std::optional<UniqueFd>();
  if (!file || fstat(file.get(), &info) != 0) return fail(error(errno, "open", path));
  if (!S_ISREG(info.st_mode)) return std::optional<UniqueFd>();
  return std::optional(std::move(file));
}

Result<std::optional<std::string>> PlainDirectory::read_link(const std::string& path) const {
  PLAYFS_TRY(auto place, place_of(path));
  if (!place) return std::optional<std::string>();
  std::string target(PATH_MAX, '\0');
  const ssize_t size = readlinkat(place->directory.get(), place->name.c_str(), target.data(), target.size());
  if (size < 0 && (is_not_there(errno) || errno == EINVAL)) return std::optional<std::string>();
  if (size < 0) return fail(error(errno, "read the link", path));
  target.resize(static_cast<std::size_t>(size));
  return std::optional(std::move(target));
}

PlainDirectory::Prepared::~Prepared() {
  if (folder_ >= 0) static_cast<void>(unlinkat(folder_, name_.c_str(), 0));
}

Result<std::string> PlainDirectory::fresh_name() const {
  // One command at a time prepares files: what has that name was left by one that was killed.
  std::string name = std::to_string(++last_);
  if (unlinkat(folder_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return name;
  return fail(error(errno, "clean up", kStateFolder));
}

Result<PlainDirectory::Prepared> PlainDirectory::prepare_file(bool is_executable,
                                                              const std::function<Status(int)>& fill) const {
  PLAYFS_TRY(std::string name, fresh_name());
  const mode_t mode = is_executable ? 0777 : 0666;
  UniqueFd file(openat(folder_.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file) return fail(error(errno, "create a file in", kStateFolder));
  Prepared prepared(folder_.get(), std::move(name));
  PLAYFS_CHECK(fill(file.get()));
  return prepared;
}

Result<PlainDirectory::Prepared> PlainDirectory::prepare_link(const std::string& target) const {
  PLAYFS_TRY(std::string name, fresh_name());
  if (symlinkat(target.c_str(), folder_.get(), name.c_str()) != 0)
    return fail(error(errno, "create a link in", kStateFolder));
  return Prepared(folder_.get(), std::move(name));
}

/// Exchanges the prepared file with what is at `place`. If that has been replaced since it was examined, puts it back.
Result<bool> PlainDirectory::exchange(const Prepared& prepared, const Place& place, const std::string& path,
                                      const MayGo& may_go) const {
  const int in = place.directory.get();
  // Open, so that no other file gets its number.
  const UniqueFd held(openat(folder_.get(), prepared.name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const auto put = held ? signature_at(folder_.get(), prepared.name_) : std::nullopt;
  if (!put) return fail(error(errno, "open a file in", kStateFolder));
  const std::string out = name_of_taken_out(prepared.name_, put->inode, place.name);
  if (renameat(folder_.get(), prepared.name_.c_str(), folder_.get(), out.c_str()) != 0)
    return fail(error(errno, "rename a file in", kStateFolder));
  if (rename_within(folder_.get(), out, in, place.name, RENAME_EXCHANGE) != 0) {
    const int number = errno;
    const bool is_unknown = is_unknown_flag(number);
    if (is_unknown && renameat(folder_.get(), out.c_str(), in, place.name.c_str()) == 0) return true;
    static_cast<void>(unlinkat(folder_.get(), out.c_str(), 0));
    if (is_not_there(is_unknown ? errno : number)) return false;
    return fail(error(is_unknown ? errno : number, "write", path));
  }
  PLAYFS_TRY(const bool was_right, may_go_at(folder_.get(), out, may_go));
  if (!was_right) PLAYFS_CHECK(put_back(out, place, *put));
  else if (unlinkat(folder_.get(), out.c_str(), 0) != 0) return fail(error(errno, "remove a file in", kStateFolder));
  return was_right;
}

/// Undoes an exchange: `put` is at `place`, and what was there is now called `out`. A file that is saved there
/// meanwhile is put back too. Of what is left in the end, only `put` is removed; anything else goes to `lost+found`.
Status PlainDirectory::put_back(const std::string& out, const Place& place, const Signature& put) const {
  std::optional<Signature> there = put, came;
  for (int tries = 0; tries < kPutBacks; ++tries) {
    const auto back = signature_at(folder_.get(), out);
    // The user removed the file meanwhile, but did not know of this version: keep it.
    if (rename_within(folder_.get(), out, place.directory.get(), place.name, RENAME_EXCHANGE) != 0) return keep(out);
    came = signature_at(folder_.get(), out);
    if (came && there && came->is_but_renamed(*there)) break;
    there = back;
  }
  if (!came || !came->is_but_renamed(put)) return keep(out);
  if (unlinkat(folder_.get(), out.c_str(), 0) != 0) return fail(error(errno, "remove a file in", kStateFolder));
  return {};
}

Result<std::optional<Signature>> PlainDirectory::put(const Prepared& prepared, const std::string& path,
                                                     const MayGo& may_go) const {
  const std::optional<Signature> nothing;
  PLAYFS_TRY(auto place, place_of(path));
  if (!place) return nothing;
  const int in = place->directory.get();
  PLAYFS_TRY(const bool may, may_go_at(in, place->name, may_go));
  if (!may) return nothing;
  struct stat info {};
  const bool is_there = fstatat(in, place->name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
  bool is_put = false;
  if (!is_there) {
    is_put = rename_within(folder_.get(), prepared.name_, in, place->name, RENAME_NOREPLACE) == 0;
    if (!is_put && is_unknown_flag(errno))
      is_put = renameat(folder_.get(), prepared.name_.c_str(), in, place->name.c_str()) == 0;
    if (!is_put && (errno == EEXIST || errno == ENOENT || errno == ENOTDIR)) return nothing;
    if (!is_put) return fail(error(errno, "write", path));
  } else {
    PLAYFS_TRY(is_put, exchange(prepared, *place, path, may_go));
  }
  if (!is_put) return nothing;
  if (fstatat(in, place->name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return fail(error(errno, "stat", path));
  return std::optional(signature_of(info));
}

Result<bool> PlainDirectory::remove(const std::string& path, const MayGo& may_go) const {
  PLAYFS_TRY(auto place, place_of(path));
  if (!place) return true;
  const int in = place->directory.get();
  struct stat info {};
  if (fstatat(in, place->name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) return true;
  PLAYFS_TRY(const bool may, may_go_at(in, place->name, may_go));
  if (!may) return false;
  PLAYFS_TRY(const std::string fresh, fresh_name());
  const std::string out = name_of_taken_out(fresh, 0, place->name);
  if (renameat(in, place->name.c_str(), folder_.get(), out.c_str()) != 0) {
    if (errno == ENOENT) return true;
    return fail(error(errno, "remove", path));
  }
  PLAYFS_TRY(const bool was_right, may_go_at(folder_.get(), out, may_go));
  // Where something was saved meanwhile, that stays.
  if (!was_right && rename_within(folder_.get(), out, in, place->name, RENAME_NOREPLACE) != 0) PLAYFS_CHECK(keep(out));
  if (was_right && unlinkat(folder_.get(), out.c_str(), 0) != 0) return fail(error(errno, "remove", path));
  return was_right;
}

Result<bool> PlainDirectory::make_directory(const std::string& path) const {
  PLAYFS_TRY(auto place, place_of(path));
  if (!place) return false;
  if (mkdirat(place->directory.get(), place->name.c_str(), 0777) == 0) return true;
  if (errno != EEXIST) return fail(error(errno, "create", path));
  PLAYFS_TRY(auto there, directory(path));
  return there.has_value();
}

Status PlainDirectory::remove_directory(const std::string& path) const {
  PLAYFS_TRY(auto place, place_of(path));
  if (!place || unlinkat(place->directory.get(), place->name.c_str(), AT_REMOVEDIR) == 0) return {};
  if (is_not_there(errno) || errno == ENOTEMPTY || errno == EEXIST) return {};
  return fail(error(errno, "remove", path));
}

}  // namespace playfs::clone
