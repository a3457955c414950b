// playfs cat: prints files at a project's head or in a revision, without a mount.
#include "app/commands/commands.h"
#include "app/lookup.h"
#include "model/chunking.h"

namespace playfs::app {

namespace {

constexpr std::size_t kPrintedPiece = 1 << 20;

Result<std::string> whole(const content::Blob& blob) {
  std::string content;
  while (content.size() < blob.size()) {
    PLAYFS_TRY(std::string piece, blob.read(content.size(), kPrintedPiece));
    if (piece.empty()) return fail(ErrorCode::corrupt, "the content is shorter than its size says");
    content += piece;
  }
  return content;
}

}  // namespace

Result<ExitCode> cat(CommandContext& context, const CatArguments& arguments) {
  PLAYFS_TRY(auto stack, context.open_client_stack());
  PLAYFS_TRY(RevisionTreePtr revision, find_revision(context, *stack, arguments.what));
  Json::Array files;
  for (const std::string& asked : arguments.paths) {
    std::string path = normal_path(asked);
    const FileEntry* entry = revision->tree.file_at(path);
    if (entry == nullptr && revision->tree.directory_at(path) != nullptr)
      return fail(ErrorCode::is_a_directory, "'" + path + "' is a directory",
                  context.next_command({{"ls"}, {arguments.what, path}}));
    if (entry == nullptr)
      return fail(ErrorCode::not_found, "there is no '" + path + "' in revision " + revision->revision.id.text(),
                  context.next_command({{"ls", "-R"}, {arguments.what}}));
    Amount size;
    size.add(*entry);
    stack.progress().begin("Reading", size);
    auto blob = blob_of(*stack, FileRef{revision, path, entry});
    auto content = blob ? whole(*blob) : Result<std::string>(fail(std::move(blob).error()));
    stack.progress().end();
    if (!content) return fail(content.error().while_doing(path));
    if (!context.out.json()) {
      // Unescaped, as cat(1) does: files may be binary, and a pipe's reader may want exactly that.
      context.out.bytes(*content);
      continue;
    }
    auto encoding = encoding_for(*content);
    files.push_back(JsonObject{{"path", path},
                               {"size", static_cast<std::uint64_t>(content->size())},
                               {"encoding", encoding == ContentEncoding::text ? "utf-8" : "base64"},
                               {"content", encode_content(*content, encoding)}});
  }
  context.out.document(JsonObject{{"project", revision->revision.project.text()},
                                  {"revision", revision->revision.id.text()},
                                  {"files", std::move(files)}});
  return ExitCode::done;
}

}  // namespace playfs::app
