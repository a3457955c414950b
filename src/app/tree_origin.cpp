#include "app/tree_origin.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "app/json_fields.h"
#include "base/fd.h"
#include "base/private_place.h"
#include "base/shell.h"
#include "clone/git_guard.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

constexpr const char* kMarkFile = "tree.json";
constexpr const char* kCloneFile = "clone.json";
/// Below the mark's folder: has the mark of a clone again, since `git clean -X` removes the first.
constexpr const char* kKeptFolder = clone::kGuardedFolder;
/// Earlier versions take every mark of version 1 for one of a whole tree.
constexpr std::uint64_t kVersion = 2, kVersionOfWhole = 1;
constexpr const char* kUnfinished = "unfinished";
constexpr const char* kLacksFiles = "lacks files";
constexpr const char* kHide = "hide";
constexpr const char* kHideOthers = "hide others";
constexpr std::size_t kLongest = 1 << 16;

/// The text of `path`, if it is a plain file of this user's. Follows no links, and never blocks.
Result<std::optional<std::string>> own_file(int directory, const std::string& path) {
  UniqueFd file(openat(directory, path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return std::optional<std::string>();
    return fail(error_from_errno(errno, "open " + path));
  }
  struct stat attributes {};
  if (fstat(file.get(), &attributes) != 0) return fail(error_from_errno(errno, "stat " + path));
  if (!S_ISREG(attributes.st_mode) || attributes.st_uid != geteuid()) return std::optional<std::string>();
  PLAYFS_TRY(std::string text, read_at(file.get(), 0, kLongest));
  return std::optional(std::move(text));
}

Result<TreeOrigin> parse(const std::string& text) {
  PLAYFS_TRY(Json document, wire::parse_json(text));
  const JsonObject* fields = document.object();
  if (fields == nullptr) return fail(ErrorCode::corrupt, "not a JSON object");
  if (number_of(*fields, "schema_version") > kVersion)
    return fail(ErrorCode::not_supported, "written by a newer version of playfs");
  TreeOrigin origin{text_of(*fields, "site"), text_of(*fields, "base_path"), ProjectId(text_of(*fields, "project")),
                    RevisionId(text_of(*fields, "revision"))};
  const std::string extent = text_of(*fields, "extent");
  origin.export_id = text_of(*fields, "export");
  if (!extent.empty()) origin.extent = extent == kLacksFiles ? Extent::lacks_files : Extent::unfinished;
  const std::string instructions = text_of(*fields, "instructions");
  if (!instructions.empty())
    origin.instructions = instructions == kHide ? Instructions::hide : Instructions::hide_others;
  if (origin.site.empty() || origin.project.empty()) return fail(ErrorCode::corrupt, "site or project is missing");
  return origin;
}

Result<std::optional<TreeOrigin>> parsed(Result<std::optional<std::string>> text, const std::string& path) {
  if (!text) return fail(std::move(text).error());
  if (!*text) return std::optional<TreeOrigin>();
  auto origin = parse(**text);
  if (origin) return std::optional(std::move(*origin));
  Error error = origin.error().while_doing(path);
  error.code = origin.error().code == ErrorCode::not_supported ? ErrorCode::not_supported : ErrorCode::corrupt;
  error.hint = "rm " + shell_word(path) + ", then give the revision with --base";
  return fail(std::move(error));
}

Result<std::optional<TreeOrigin>> read_in(const std::string& directory, const char* file) {
  const std::string folder = directory + "/" + kMarkFolder;
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd within(open(folder.c_str(), flags));
  if (!within) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES) return std::optional<TreeOrigin>();
    return fail(error_from_errno(errno, "open " + folder));
  }
  auto mark = parsed(own_file(within.get(), file), folder + "/" + file);
  if (!mark || *mark || std::string_view(file) != kCloneFile) return mark;
  const UniqueFd kept(openat(within.get(), kKeptFolder, flags));
  if (!kept) return mark;
  return parsed(own_file(kept.get(), file), folder + "/" + kKeptFolder + "/" + file);
}

/// Fails unless nothing is at `path`, where a mark that counts was not found.
Status check_no_mark(const std::string& path) {
  struct stat attributes {};
  if (lstat(path.c_str(), &attributes) == 0)
    return fail(ErrorCode::permission_denied,
                path + (S_ISREG(attributes.st_mode) ? " belongs to another user" : " is not a plain file of yours"));
  if (errno == ENOENT || errno == ENOTDIR) return {};
  return fail(error_from_errno(errno, "stat " + path));
}

}  // namespace

Result<std::optional<TreeOrigin>> read_mark(const std::string& directory) {
  const std::string folder = directory + "/" + kMarkFolder;
  struct stat attributes {};
  if (lstat(folder.c_str(), &attributes) == 0 && S_ISLNK(attributes.st_mode))
    return fail(ErrorCode::permission_denied, folder + " is a link");
  PLAYFS_TRY(auto mark, read_in(directory, kMarkFile));
  for (const char* file : {kMarkFile, kCloneFile})
    if (!mark) PLAYFS_CHECK(check_no_mark(folder + "/" + file));
  return mark;
}

Result<std::optional<TreeOrigin>> read_clone_mark(const std::string& directory) {
  return read_in(directory, kCloneFile);
}

Result<std::optional<CloneFound>> find_clone(const std::string& path) {
  for (std::string at = path;; at.resize(at.rfind('/'))) {
    PLAYFS_TRY(auto mark, read_clone_mark(at));
    if (mark) return std::optional(CloneFound{at.empty() ? "/" : at, *std::move(mark)});
    if (at.find('/') == std::string::npos) return std::optional<CloneFound>();
  }
}

std::optional<TreeOrigin> find_mark(const std::string& directory) {
  for (std::string at = directory;; at.resize(at.rfind('/'))) {
    for (const char* file : {kMarkFile, kCloneFile})
      if (auto mark = read_in(at, file); mark && *mark) return *mark;
    if (at.empty() || at == "/" || at.find('/') == std::string::npos) return std::nullopt;
  }
}

Status write_mark(const std::string& directory, const TreeOrigin& origin) {
  const std::string folder = directory + "/" + kMarkFolder;
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) return fail(error_from_errno(errno, "create " + folder));
  PLAYFS_CHECK(write_origin(folder + "/" + kMarkFile, origin));
  return sync_directory(directory);
}

Status write_clone_mark(const std::string& directory, const TreeOrigin& origin) {
  const std::string folder = directory + "/" + kMarkFolder, kept = folder + "/" + kKeptFolder;
  PLAYFS_CHECK(write_origin(folder + "/" + kCloneFile, origin));
  PLAYFS_CHECK(make_private_directory_below(folder, kept));
  return write_origin(kept + "/" + kCloneFile, origin);
}

bool has_whole_clone_mark(const std::string& directory) {
  const std::string folder = directory + "/" + kMarkFolder + "/";
  return access((folder + kCloneFile).c_str(), F_OK) == 0 &&
         access((folder + kKeptFolder + "/" + kCloneFile).c_str(), F_OK) == 0;
}

Result<std::optional<TreeOrigin>> read_origin(const std::string& path) {
  return parsed(own_file(AT_FDCWD, path), path);
}

Status write_origin(const std::string& path, const TreeOrigin& origin) {
  const bool is_whole = origin.extent == Extent::whole;
  JsonObject fields{{"schema_version", is_whole ? kVersionOfWhole : kVersion},
                    {"site", origin.site},
                    {"base_path", origin.base_path},
                    {"project", origin.project.text()},
                    {"revision", origin.revision.text()}};
  if (!origin.export_id.empty()) fields.append("export", origin.export_id);
  if (!is_whole) fields.append("extent", origin.extent == Extent::lacks_files ? kLacksFiles : kUnfinished);
  if (origin.instructions != Instructions::show)
    fields.append("instructions", origin.instructions == Instructions::hide ? kHide : kHideOthers);
  return write_file_atomically(path, wire::to_text(Json(std::move(fields))) + "\n", 0644);
}

}  // namespace playfs::app
