#include "clone/staged.h"

namespace playfs::clone {

namespace {
constexpr std::size_t kReadAtOnce = 1 << 20;
}  // namespace

Result<StagedFile> staged_file(stage::Stage& stage, const stage::InodePtr& inode) {
  PLAYFS_TRY(const stage::Attributes attributes, stage.attributes(inode));
  StagedFile file;
  file.inode = inode;
  file.kind = attributes.kind;
  if (attributes.kind == stage::Kind::symlink) file.mode = FileMode::symlink;
  else if ((attributes.permissions & 0100) != 0) file.mode = FileMode::executable;
  file.lower = stage.lower_content(inode);
  if (file.lower) {
    file.hash = known_hash(*file.lower->entry);
    file.key = "published " + content_key(*file.lower->entry);
  } else {
    file.key = "local " + std::to_string(attributes.ino);
  }
  return file;
}

Result<std::optional<StagedFile>> staged_at(stage::Stage& stage, const std::string& path) {
  const stage::InodePtr inode = stage.find(path);
  if (!inode) return std::optional<StagedFile>();
  PLAYFS_TRY(StagedFile file, staged_file(stage, inode));
  return std::optional(std::move(file));
}

Result<std::optional<ContentHash>> hash_of(stage::Stage& stage, const StagedFile& file) {
  if (file.hash || file.lower || !file.has_content()) return file.hash;
  if (file.kind == stage::Kind::symlink) {
    PLAYFS_TRY(const std::string target, stage.symlink_target(file.inode));
    return std::optional(ContentHash::of(target));
  }
  ContentHasher hasher;
  for (std::uint64_t offset = 0;;) {
    PLAYFS_TRY(const std::string piece, stage.read(file.inode, offset, kReadAtOnce));
    hasher.update(piece);
    offset += piece.size();
    if (piece.size() < kReadAtOnce) return std::optional(hasher.finish());
  }
}

}  // namespace playfs::clone
