#include "app/import_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "app/tree_origin.h"
#include "base/fd.h"
#include "model/path.h"
#include "model/repository.h"

namespace playfs::app {

namespace {

constexpr std::size_t kPiece = 1 << 20;
constexpr std::size_t kLongestTarget = 4096;

class Importer {
 public:
  Importer(stage::Stage& stage, const std::function<void(std::uint64_t)>& has_read)
      : stage_(stage), has_read_(has_read) {}

  Result<std::vector<Skipped>> run(const std::string& directory) {
    UniqueFd top(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!top) return fail(error_from_errno(errno, "open " + directory));
    PLAYFS_CHECK(take_directory(std::move(top), "", stage_.root()));
    return std::move(skipped_);
  }

 private:
  Status take_directory(UniqueFd directory, const std::string& path, const stage::InodePtr& into) {
    PLAYFS_TRY(std::vector<std::string> names, names_in(directory.get(), path));
    std::set<std::string> kept;
    for (const std::string& name : names) {
      std::string whole = path.empty() ? name : path + "/" + name;
      PLAYFS_TRY(bool taken, take(directory.get(), name, whole, into));
      if (taken) kept.insert(name);
    }
    return remove_others(into, kept);
  }

  /// Reads the whole listing first, so that recursion holds only one descriptor per level.
  Result<std::vector<std::string>> names_in(int directory, const std::string& path) {
    DIR* stream = fdopendir(dup(directory));
    if (stream == nullptr) return fail(error_from_errno(errno, "read the directory " + path));
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(stream)) {
      if (std::string_view name = entry->d_name; name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    const int error = errno;
    closedir(stream);
    // A name missing from a partial listing would be taken for deleted.
    if (error != 0) return fail(error_from_errno(error, "read the directory " + path));
    std::sort(names.begin(), names.end());
    return names;
  }

  /// Returns whether the stage has the name now.
  Result<bool> take(int directory, const std::string& name, const std::string& path, const stage::InodePtr& into) {
    struct stat attributes {};
    if (fstatat(directory, name.c_str(), &attributes, AT_SYMLINK_NOFOLLOW) != 0)
      return fail(error_from_errno(errno, "stat " + path));
    if (S_ISDIR(attributes.st_mode)) {
      if (name == kMarkFolder) return false;
      // Never published, and often larger than everything else, so not even staged.
      if (is_repository_folder(name)) return false;
    }
    if (auto why = why_not_a_component(name)) return skip(path, *why);
    if (S_ISDIR(attributes.st_mode)) {
      UniqueFd next(openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!next) return fail(error_from_errno(errno, "open " + path));
      PLAYFS_TRY(stage::InodePtr inode, entry_of_kind(into, name, stage::Kind::directory));
      if (!inode) {
        PLAYFS_TRY(inode, stage_.make_directory(into, name, creation(0755)));
      }
      PLAYFS_CHECK(take_directory(std::move(next), path, inode));
      return true;
    }
    if (S_ISLNK(attributes.st_mode)) return take_symlink(directory, name, path, into);
    if (S_ISREG(attributes.st_mode)) return take_file(directory, name, path, into);
    return skip(path, "neither a file, a directory nor a symbolic link");
  }

  Result<bool> take_symlink(int directory, const std::string& name, const std::string& path,
                            const stage::InodePtr& into) {
    std::string target(kLongestTarget, '\0');
    ssize_t size = readlinkat(directory, name.c_str(), target.data(), target.size());
    if (size < 0) return fail(error_from_errno(errno, "read the link " + path));
    target.resize(static_cast<std::size_t>(size));
    PLAYFS_TRY(stage::InodePtr there, entry_of_kind(into, name, stage::Kind::symlink));
    if (there) {
      auto lower = stage_.lower_content(there);
      if (lower && lower->entry->inline_content() == target) return true;
      PLAYFS_CHECK(stage_.unlink(into, name));
    }
    auto made = stage_.make_symlink(into, name, target, creation(0777));
    if (!made) return fail(made.error().while_doing(path));
    return true;
  }

  Result<bool> take_file(int directory, const std::string& name, const std::string& path, const stage::InodePtr& into) {
    UniqueFd file(openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!file) return fail(error_from_errno(errno, "open " + path));
    struct stat attributes {};
    if (fstat(file.get(), &attributes) != 0) return fail(error_from_errno(errno, "stat " + path));
    unsigned permissions = (attributes.st_mode & 0111) != 0 ? 0755 : 0644;
    PLAYFS_TRY(stage::InodePtr inode, entry_of_kind(into, name, stage::Kind::file));
    if (!inode) {
      PLAYFS_TRY(inode, stage_.make_file(into, name, creation(permissions)));
    }
    auto written = copy(file.get(), inode);
    if (!written) return fail(written.error().while_doing(path));
    has_read_(static_cast<std::uint64_t>(attributes.st_size));
    stage::AttributeChange mode;
    mode.permissions = permissions;
    PLAYFS_CHECK(stage_.set_attributes(inode, mode));
    return true;
  }

  Status copy(int file, const stage::InodePtr& inode) {
    if (auto lower = stage_.lower_content(inode)) {
      // Published content is recognised by its hash; if it was not verified, it is simply written again.
      PLAYFS_TRY(auto same, has_content(file, *lower));
      if (same) return {};
    }
    stage::AttributeChange empty;
    empty.size = 0;
    PLAYFS_CHECK(stage_.set_attributes(inode, empty));
    for (std::uint64_t offset = 0;;) {
      PLAYFS_TRY(std::string piece, read_at(file, offset, kPiece));
      if (piece.empty()) return {};
      PLAYFS_CHECK(stage_.write(inode, offset, piece));
      offset += piece.size();
    }
  }

  Result<bool> has_content(int file, const FileRef& lower) {
    auto claimed = ContentHash::parse(lower.entry->hash_claim);
    if (!claimed) return false;
    ContentHasher hasher;
    std::uint64_t offset = 0;
    for (;;) {
      PLAYFS_TRY(std::string piece, read_at(file, offset, kPiece));
      if (piece.empty()) break;
      hasher.update(piece);
      offset += piece.size();
    }
    if (hasher.finish() != *claimed) return false;
    return true;
  }

  /// The inode of that name if it is of `kind`, else nullptr; anything else of that name is removed.
  Result<stage::InodePtr> entry_of_kind(const stage::InodePtr& directory, const std::string& name, stage::Kind kind) {
    auto found = stage_.lookup(directory, name);
    if (!found && found.error().code == ErrorCode::not_found) return stage::InodePtr();
    if (!found) return fail(found.error());
    PLAYFS_TRY(stage::Attributes attributes, stage_.attributes(*found));
    if (attributes.kind == kind) return *found;
    PLAYFS_CHECK(remove(directory, name, *found, attributes.kind));
    return stage::InodePtr();
  }

  Status remove(const stage::InodePtr& directory, const std::string& name, const stage::InodePtr& inode,
                stage::Kind kind) {
    if (kind != stage::Kind::directory) return stage_.unlink(directory, name);
    PLAYFS_CHECK(remove_others(inode, {}));
    return stage_.remove_directory(directory, name);
  }

  Status remove_others(const stage::InodePtr& directory, const std::set<std::string>& kept) {
    PLAYFS_TRY(auto entries, stage_.list(directory, 0, SIZE_MAX));
    for (const stage::DirectoryEntry& entry : entries) {
      if (entry.name == "." || entry.name == ".." || kept.contains(entry.name)) continue;
      PLAYFS_TRY(stage::Attributes attributes, stage_.attributes(entry.inode));
      PLAYFS_CHECK(remove(directory, entry.name, entry.inode, attributes.kind));
    }
    return {};
  }

  bool skip(const std::string& path, const std::string& reason) {
    skipped_.push_back({path, reason});
    return false;
  }

  static stage::Creation creation(unsigned permissions) { return {permissions, geteuid(), getegid()}; }

  stage::Stage& stage_;
  const std::function<void(std::uint64_t)>& has_read_;
  std::vector<Skipped> skipped_;
};

}  // namespace

Result<std::vector<Skipped>> make_stage_look_like(stage::Stage& stage, const std::string& directory,
                                                  const std::function<void(std::uint64_t)>& has_read) {
  return Importer(stage, has_read).run(directory);
}

}  // namespace playfs::app
