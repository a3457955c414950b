// The part of take-in that reads files and links.
#include <unistd.h>

#include "clone/names.h"
#include "clone/take_in.h"
#include "model/chunking.h"
#include "stage/ignore.h"

namespace playfs::clone {

namespace {

constexpr std::size_t kTakenAtOnce = 1 << 20;
/// How often a file is read again that changes meanwhile, or whose content in the stage does.
constexpr int kTries = 4;

}  // namespace

stage::Creation TakeIn::creation_of(bool is_executable) {
  return {is_executable ? 0755U : 0644U, geteuid(), getegid()};
}

Result<ContentHash> TakeIn::read_bytes(int file, const stage::InodePtr& into) {
  ContentHasher hasher;
  for (std::uint64_t offset = 0;;) {
    PLAYFS_TRY(const std::string piece, read_at(file, offset, kTakenAtOnce));
    hasher.update(piece);
    if (into && !piece.empty()) PLAYFS_CHECK(stage_.write(into, offset, piece));
    offset += piece.size();
    if (piece.size() < kTakenAtOnce) return hasher.finish();
  }
}

Result<std::optional<TakeIn::Content>> TakeIn::read_once(const std::string& path, const stage::InodePtr& into) {
  const std::optional<Content> nothing;
  PLAYFS_TRY(auto before, directory_.look(path));
  if (!before || S_ISDIR(before->st_mode)) return nothing;
  Content content;
  content.seen = signature_of(*before);
  if (S_ISLNK(before->st_mode)) {
    PLAYFS_TRY(auto target, directory_.read_link(path));
    if (!target) return nothing;
    content.mode = FileMode::symlink;
    content.hash = ContentHash::of(*target);
    content.target = *std::move(target);
    return std::optional(std::move(content));
  }
  PLAYFS_TRY(auto file, directory_.open_file(path));
  if (!file) return nothing;
  if ((before->st_mode & 0111) != 0) content.mode = FileMode::executable;
  PLAYFS_TRY(content.hash, read_bytes(file->get(), into));
  struct stat after {};
  if (fstat(file->get(), &after) != 0) return fail(error_from_errno(errno, "stat " + path));
  if (signature_of(after) != content.seen) content.seen = {.mode = content.seen.mode};
  return std::optional(std::move(content));
}

Result<std::optional<TakeIn::Content>> TakeIn::read(const std::string& path, const stage::InodePtr& into) {
  for (int tries = 1;; ++tries) {
    stage::AttributeChange empty;
    empty.size = 0;
    if (into) PLAYFS_CHECK(stage_.set_attributes(into, empty));
    PLAYFS_TRY(auto content, read_once(path, into));
    const Row* known = index_.find(path);
    const bool is_file = content && content->mode != FileMode::symlink;
    if (is_file && known && !known->has_bits_of_mode()) content->mode = known->mode;
    if (!content || content->seen.inode != 0 || tries == kTries) return content;
  }
}

Result<std::optional<std::string>> TakeIn::why_unread(const std::string& path) const {
  const std::optional<std::string> readable;
  auto try_it = [&]() -> Result<std::optional<std::string>> {
    PLAYFS_TRY(const auto info, directory_.look(path));
    if (!info || !S_ISREG(info->st_mode)) return readable;
    PLAYFS_TRY([[maybe_unused]] const auto opened, directory_.open_file(path));
    const auto size = static_cast<std::uint64_t>(info->st_size);
    if (size <= kMaxFileSize) return readable;
    return std::optional("it has " + std::to_string(size) + " bytes; a published file has at most " +
                         std::to_string(kMaxFileSize));
  };
  auto tried = try_it();
  if (!tried && is_about_access(tried.error().code)) return std::optional(tried.error().message);
  return tried;
}

Result<bool> TakeIn::is_unread(const std::string& path) {
  PLAYFS_TRY(const auto why, why_unread(path));
  if (!why) return false;
  // Without these rules, ignored files would be published.
  if (stage::is_rule_file(path)) return fail(ErrorCode::permission_denied, path + " cannot be read: " + *why);
  unread_.push_back({path, *why});
  const Row* known = index_.find(path);
  if (!known || !known->is_new()) return true;
  const Row row = *known;
  index_.erase(path);
  PLAYFS_TRY(auto staged, staged_at(stage_, path));
  if (staged && is_made_here(row, *staged)) PLAYFS_CHECK(remove_staged(path, *staged));
  return true;
}

bool TakeIn::is_made_here(const Row& row, const StagedFile& staged) {
  if (!row.is_new() || staged.lower || staged.kind == stage::Kind::directory) return false;
  return row.staged == kMadeHere || row.staged == staged.key;
}

bool TakeIn::is_ours(const Row* row, const std::optional<StagedFile>& staged) const {
  if (!index_.is_behind()) return true;
  if (row && row->is_new() && row->staged == kMadeHere) return !staged || is_made_here(*row, *staged);
  if (!row || !staged) return !row && !staged;
  if (row->kind == RowKind::refused || row->kind == RowKind::local_only) return staged->key == row->staged;
  if (!row->has_content() || !staged->has_content() || staged->mode != row->mode) return false;
  return staged->key == row->staged || staged->hash == row->hash;
}

Status TakeIn::take_files(const std::vector<std::string>& paths) {
  std::vector<std::string> begun;
  for (const std::string& path : paths) {
    PLAYFS_TRY(const bool is_left, is_unread(path));
    if (is_left) continue;
    PLAYFS_TRY(const bool is_touched, is_but_touched(path));
    if (!is_touched) begun.push_back(path);
  }
  if (begun.empty()) return {};
  for (const std::string& path : begun) begin(path);
  PLAYFS_CHECK(commit());
  for (const std::string& path : begun) PLAYFS_CHECK(take_file(path));
  return {};
}

Result<bool> TakeIn::is_but_touched(const std::string& path) {
  const Row* known = index_.find(path);
  if (!known || !known->has_content() || known->is_begun) return false;
  PLAYFS_TRY(auto content, read(path));
  const bool is_link = content && content->mode == FileMode::symlink;
  if (!content || content->hash != known->hash || is_link != (known->kind == RowKind::symlink)) return false;
  Row row = *known;
  row.seen = content->seen;
  if (row.mode != content->mode) {
    PLAYFS_TRY(auto staged, staged_at(stage_, path));
    if (!staged || staged->kind != stage::Kind::file || !is_ours(known, staged)) return false;
    PLAYFS_CHECK(set_mode(staged->inode, content->mode));
    row.mode = content->mode;
  }
  index_.put(path, std::move(row));
  return true;
}

Status TakeIn::set_mode(const stage::InodePtr& inode, FileMode mode) {
  stage::AttributeChange change;
  change.permissions = creation_of(mode == FileMode::executable).permissions;
  PLAYFS_CHECK(stage_.set_attributes(inode, change));
  return {};
}

Status TakeIn::take_file(const std::string& path) {
  PLAYFS_TRY(auto content, read(path));
  if (!content) return {};  // it has just gone: the next command sees that
  for (int tries = 1;; ++tries) {
    Status taken = take_content(path, *content);
    // A publication that goes on in the background has just settled the file.
    const bool is_passing = !taken && (taken.error().code == ErrorCode::busy || taken.error().code == ErrorCode::stale);
    if (taken) return taken;
    if (!is_passing || tries == kTries) return fail(taken.error().while_doing(path));
  }
}

Status TakeIn::take_content(const std::string& path, const Content& content) {
  const Row* before = index_.find(path);
  const bool is_new = before->hash == ContentHash() && before->staged.empty();
  Row row;
  row.kind = content.mode == FileMode::symlink ? RowKind::symlink : RowKind::file;
  row.seen = content.seen;
  row.hash = content.hash;
  row.mode = content.mode;
  PLAYFS_TRY(auto staged, staged_at(stage_, path));
  if (staged && staged->mode == row.mode && staged->has_content()) {
    PLAYFS_TRY(auto known, hash_of(stage_, *staged));
    if (known == row.hash) return note(path, std::move(row), staged->inode);
  }
  const bool is_replaceable = is_ours(is_new ? nullptr : before, staged);
  if (staged && (!is_replaceable || staged->kind == stage::Kind::directory)) {
    PLAYFS_CHECK(set_aside(path));
    staged.reset();
  } else if (!is_replaceable) {
    add_conflict(path, "it was changed here while others deleted it", row.hash);
  }
  PLAYFS_TRY(const stage::InodePtr above, staged_directory(directory_of(path)));
  if (staged && (row.kind == RowKind::symlink || staged->kind != stage::Kind::file)) {
    PLAYFS_CHECK(remove_staged(path, *staged));  // a link's target cannot be changed
    staged.reset();
  }
  if (row.kind == RowKind::symlink) {
    PLAYFS_TRY(auto link, stage_.make_symlink(above, name_of(path), content.target, creation_of(true)));
    return note(path, std::move(row), link);
  }
  stage::InodePtr inode = staged ? staged->inode : nullptr;
  if (!inode) {
    PLAYFS_TRY(inode, stage_.make_file(above, name_of(path), creation_of(false)));
  }
  PLAYFS_TRY(auto written, read(path, inode));
  // If it is gone by now, or a link, the next command sees that.
  row.seen = written ? written->seen : Signature();
  if (written) row.hash = written->hash, row.mode = written->mode;
  PLAYFS_CHECK(set_mode(inode, row.mode));
  return note(path, std::move(row), inode);
}

/// What the directory has at the path is what the stage has there.
Status TakeIn::note(const std::string& path, Row row, const stage::InodePtr& inode) {
  PLAYFS_TRY(const StagedFile now, staged_file(stage_, inode));
  row.staged = now.key;
  index_.put(path, std::move(row));
  return {};
}

}  // namespace playfs::clone
