// playfs export: writes a revision to a plain directory, marked with its origin (tree_origin.h).
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>

#include "app/commands/commands.h"
#include "app/left_out.h"
#include "app/lookup.h"
#include "app/tree_origin.h"
#include "base/fd.h"
#include "content/lone_failures.h"

namespace playfs::app {

namespace {

constexpr std::size_t kExportedPiece = 1 << 20;

struct Exporter {
  runtime::ClientStack& stack;
  TransferProgress& progress;
  const RevisionTreePtr& revision;
  std::uint64_t files = 0;
  std::uint64_t size = 0;
  LeftOut left_out = {};  ///< files whose content cannot be had, now or later
  content::LoneFailures failures = {};

  Status directory(int at, const std::string& path, const Tree::Directory& from) {
    for (const auto& [name, child] : from.children) {
      std::string whole = path.empty() ? name : path + "/" + name;
      if (const auto* entry = std::get_if<const FileEntry*>(&child)) {
        auto written = file(at, name, FileRef{revision, whole, *entry});
        const bool is_lone = failures.is_lone(written);
        if (written) continue;
        if (!is_lone && !concerns_content(written.error().code))
          return fail(written.error().while_doing("export " + whole));
        // One bad published entry must not make the others inaccessible.
        left_out.add(whole, written.error());
        continue;
      }
      if (mkdirat(at, name.c_str(), 0777) != 0) return fail(error_from_errno(errno, "create " + whole));
      UniqueFd next(openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!next) return fail(error_from_errno(errno, "open " + whole));
      PLAYFS_CHECK(directory(next.get(), whole, *std::get<std::unique_ptr<Tree::Directory>>(child)));
    }
    return {};
  }

  /// Whether the published content is at fault, so that a retry would not help.
  static bool concerns_content(ErrorCode code) {
    return code == ErrorCode::corrupt || code == ErrorCode::refused_input || code == ErrorCode::file_too_big ||
           code == ErrorCode::not_found;
  }

  Status file(int at, const std::string& name, const FileRef& ref) {
    PLAYFS_TRY(content::Blob blob, blob_of(stack, ref));
    if (ref.entry->mode == FileMode::symlink) {
      PLAYFS_TRY(std::string target, blob.read(0, kExportedPiece));
      if (target.empty() || target.size() >= PATH_MAX || target.find('\0') != std::string::npos)
        return fail(ErrorCode::refused_input, "not a valid symbolic link target");
      if (symlinkat(target.c_str(), at, name.c_str()) != 0) return fail(error_from_errno(errno, "symlink"));
      return count(blob);
    }
    mode_t mode = ref.entry->mode == FileMode::executable ? 0777 : 0666;  // the umask applies
    UniqueFd out(openat(at, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!out) return fail(error_from_errno(errno, "create"));
    auto copied = copy(blob, out.get());
    if (!copied) {
      static_cast<void>(unlinkat(at, name.c_str(), 0));
      return copied;
    }
    return count(blob);
  }

  static Status copy(const content::Blob& blob, int out) {
    for (std::uint64_t offset = 0; offset < blob.size();) {
      PLAYFS_TRY(std::string piece, blob.read(offset, kExportedPiece));
      if (piece.empty()) return fail(ErrorCode::corrupt, "the content is shorter than its size says");
      PLAYFS_CHECK(write_all(out, piece));
      offset += piece.size();
    }
    return {};
  }

  Status count(const content::Blob& blob) {
    ++files;
    size += blob.size();
    progress.file_done(blob.size());
    return {};
  }
};

/// The directory, new or empty: a revision is never mixed with existing files.
Result<UniqueFd> open_target(const std::string& path) {
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) return fail(error_from_errno(errno, "create " + path));
  std::error_code problem;
  bool empty = std::filesystem::is_empty(path, problem);
  if (!problem && !empty) return fail(ErrorCode::not_empty, path + " is not empty", "name a new directory");
  UniqueFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return fail(error_from_errno(errno, "open " + path));
  return directory;
}

}  // namespace

Result<ExitCode> export_revision(CommandContext& context, const ExportArguments& arguments) {
  PLAYFS_TRY(auto stack, context.open_client_stack());
  PLAYFS_TRY(RevisionTreePtr revision, find_revision(context, *stack, arguments.revision));
  std::string path = context.io.absolute(arguments.directory);
  PLAYFS_TRY(UniqueFd directory, open_target(path));
  const runtime::Source& source = stack->source();
  TreeOrigin origin{source.text, source.base_path, revision->revision.project, revision->revision.id};
  origin.export_id = stack->random().uuid();
  // First: if this process is killed, what is missing must not look deleted.
  origin.extent = Extent::unfinished;
  PLAYFS_CHECK(write_mark(path, origin));
  stack->site().prefetch(revision);
  Exporter exporter{*stack, stack.progress(), revision};
  {
    const EndOfTransfer ending(&stack.progress());
    stack.progress().begin("Exporting", Amount::of(revision->tree.manifest()));
    PLAYFS_CHECK(exporter.directory(directory.get(), "", revision->tree.root()));
  }
  if (syncfs(directory.get()) != 0) return fail(error_from_errno(errno, "sync " + path));
  origin.extent = exporter.left_out.empty() ? Extent::whole : Extent::lacks_files;
  PLAYFS_CHECK(write_mark(path, origin));
  context.out.line(path);
  context.out.note("Exported revision " + safe(revision->revision.id.text()) + ": " + std::to_string(exporter.files) +
                   (exporter.files == 1 ? " file, " : " files, ") + std::to_string(exporter.size) + " bytes.");
  LeftOut& left_out = exporter.left_out;
  // A commit or an import carries these forward unchanged.
  const auto& refused = revision->tree.manifest().refused;
  left_out.add(refused);
  left_out.tell(context.out);
  if (origin.extent == Extent::lacks_files)
    context.out.note("The directory is incomplete: it cannot be imported as an edit of this revision without them.");
  context.out.document(JsonObject{{"project", revision->revision.project.text()},
                                  {"revision", revision->revision.id.text()},
                                  {"directory", path},
                                  {"files", exporter.files},
                                  {"bytes", exporter.size},
                                  {"refused", static_cast<std::uint64_t>(refused.size())},
                                  {"left_out", left_out.document()}});
  return left_out.exit_code();
}

}  // namespace playfs::app
