#include "clone/bring_out.h"

#include <climits>

#include "clone/names.h"
#include "model/path.h"
#include "model/repository.h"

namespace playfs::clone {

namespace {

constexpr std::size_t kBroughtAtOnce = 1 << 20;

/// The content itself is at fault, so that no retry helps.
bool is_final(ErrorCode code) { return code == ErrorCode::refused_input || code == ErrorCode::file_too_big; }
/// The content cannot be had, but perhaps later: a service may lag, or lie only once.
bool is_lacking(ErrorCode code) { return code == ErrorCode::corrupt || code == ErrorCode::not_found; }

Result<ContentHash> hash_of_file(int file) {
  ContentHasher hasher;
  for (std::uint64_t offset = 0;;) {
    PLAYFS_TRY(const std::string piece, read_at(file, offset, kBroughtAtOnce));
    hasher.update(piece);
    offset += piece.size();
    if (piece.size() < kBroughtAtOnce) return hasher.finish();
  }
}

}  // namespace

Status BringOut::run() {
  PLAYFS_CHECK(survey(stage_.root(), ""));
  PLAYFS_CHECK(remove_what_is_gone());
  PLAYFS_CHECK(make_directories());
  for (const auto& [path, staged] : files_) PLAYFS_CHECK(bring(path, staged));
  forget_left_out();
  return {};
}

void BringOut::forget_left_out() {
  const Index::LeftOut left_out = index_.left_out();
  for (const auto& [path, why] : left_out)
    if (!files_.contains(path)) index_.note_left_out(path, "");
}

Status BringOut::survey(const stage::InodePtr& directory, const std::string& path) {
  PLAYFS_TRY(const auto entries, stage_.list(directory, 0, SIZE_MAX));
  for (const stage::DirectoryEntry& entry : entries) {
    const std::string whole = joined(path, entry.name);
    PLAYFS_TRY(StagedFile staged, staged_file(stage_, entry.inode));
    const Row* row = index_.find(whole);
    if (staged.kind == stage::Kind::directory) {
      const bool is_local = row && row->kind == RowKind::local_only;
      PLAYFS_TRY(const bool is_but_its_name, is_local ? is_but_local(entry.inode, *row) : Result<bool>(false));
      if (is_but_its_name || stage_.has_but_hidden(entry.inode)) continue;
      directories_.emplace(whole, entry.inode);
      PLAYFS_CHECK(survey(entry.inode, whole));
    } else if (staged.has_content() && !(row && row->kind == RowKind::local_only && row->staged == staged.key)) {
      files_.emplace(whole, std::move(staged));
    }
  }
  return {};
}

Result<bool> BringOut::is_but_local(const stage::InodePtr& directory, const Row& row) const {
  PLAYFS_TRY(const auto entries, stage_.list(directory, 0, 2));
  return entries.empty() || (entries.size() == 1 && entries.front().name == row.staged);
}

Status BringOut::remove_what_is_gone() {
  std::vector<std::string> gone;
  for (const auto& [path, row] : index_.rows()) {
    const bool is_wanted = row.kind == RowKind::directory ? directories_.contains(path) : files_.contains(path);
    // Never removes local-only names. If the stage has something else at such a path, survey() has handled it.
    if (!is_wanted && row.kind != RowKind::local_only) gone.push_back(path);
  }
  for (auto path = gone.rbegin(); path != gone.rend(); ++path) {
    const Row row = *index_.find(*path);
    if (row.kind == RowKind::directory) PLAYFS_CHECK(directory_.remove_directory(*path));
    if (row.has_content()) {
      PLAYFS_TRY(const bool is_gone, directory_.remove(*path, as_known(*path)));
      if (!is_gone) {
        result_.contested.push_back(*path);
        continue;
      }
      ++result_.removed;
    }
    index_.erase(*path);
  }
  return {};
}

Status BringOut::make_directories() {
  for (const auto& [path, inode] : directories_) {
    const Row* known = index_.find(path);
    if (known && known->kind == RowKind::directory) continue;
    PLAYFS_TRY(const bool is_made, directory_.make_directory(path));
    if (!is_made) {
      result_.contested.push_back(path);
      continue;
    }
    Row row;
    row.kind = RowKind::directory;
    index_.put(path, row);
  }
  return {};
}

bool BringOut::is_there(const Row& row, const StagedFile& staged) const {
  if (row.kind == RowKind::refused) return row.staged == staged.key;
  if (!row.has_content() || row.is_begun || row.mode != staged.mode) return false;
  return row.staged == staged.key || staged.hash == row.hash;
}

Status BringOut::bring(const std::string& path, const StagedFile& staged) {
  if (const Row* known = index_.find(path); known && is_there(*known, staged)) {
    if (known->has_content()) index_.note_left_out(path, "");
    if (known->staged == staged.key) return {};
    Row row = *known;
    row.staged = staged.key;
    index_.put(path, std::move(row));
    return {};
  }
  Status written = write(path, staged);
  const bool is_lone = failures_.is_lone(written);
  if (written) index_.note_left_out(path, "");
  if (!written && is_final(written.error().code)) return leave_out(path, staged, written.error());
  if (written || !(is_lone || is_lacking(written.error().code))) return written;
  index_.note_left_out(path, written.error().message);
  result_.left_out.push_back({path, written.error()});
  return {};
}

Status BringOut::write(const std::string& path, const StagedFile& staged) {
  Row row;
  row.kind = staged.kind == stage::Kind::symlink ? RowKind::symlink : RowKind::file;
  row.mode = staged.mode;
  row.staged = staged.key;
  PLAYFS_TRY(auto prepared, prepare(path, staged, row.hash));
  PLAYFS_TRY(auto put, directory_.put(prepared, path, as_known(path)));
  if (!put) {
    result_.contested.push_back(path);
    return {};
  }
  row.seen = *put;
  index_.put(path, std::move(row));
  ++result_.written;
  return {};
}

Result<PlainDirectory::Prepared> BringOut::prepare(const std::string& path, const StagedFile& staged,
                                                   ContentHash& hash) {
  if (staged.kind == stage::Kind::symlink) {
    PLAYFS_TRY(const std::string target, target_of(staged));
    if (target.empty() || target.size() >= PATH_MAX || target.find('\0') != std::string::npos)
      return fail(ErrorCode::refused_input, "not a valid symbolic link target");
    hash = ContentHash::of(target);
    if (is_named_as_head(path) && is_content_of_head(staged.mode, target))
      return fail(ErrorCode::refused_input, std::string(kWhyNoHead));
    return directory_.prepare_link(target);
  }
  return directory_.prepare_file(staged.mode == FileMode::executable,
                                 [&](int file) { return copy(path, staged, file, hash); });
}

Result<std::string> BringOut::target_of(const StagedFile& staged) const {
  if (!staged.lower) return stage_.symlink_target(staged.inode);
  PLAYFS_TRY(const content::Blob blob, fetch_(*staged.lower));
  return blob.read(0, PATH_MAX);
}

Status BringOut::copy(const std::string& path, const StagedFile& staged, int file, ContentHash& hash) const {
  if (staged.lower) {
    PLAYFS_TRY(const content::Blob blob, fetch_(*staged.lower));
    PLAYFS_CHECK(blob.copy_to(file));
  } else {
    for (std::uint64_t offset = 0;;) {
      PLAYFS_TRY(const std::string piece, stage_.read(staged.inode, offset, kBroughtAtOnce));
      PLAYFS_CHECK(write_all_at(file, piece, offset));
      offset += piece.size();
      if (piece.size() < kBroughtAtOnce) break;
    }
  }
  if (is_named_as_head(path)) {
    PLAYFS_TRY(const std::string beginning, read_at(file, 0, kReadOfHead));
    if (is_content_of_head(staged.mode, beginning)) return fail(ErrorCode::refused_input, std::string(kWhyNoHead));
  }
  PLAYFS_TRY(hash, hash_of_file(file));
  return {};
}

/// Removes the older version, which must not pass for this one.
Status BringOut::leave_out(const std::string& path, const StagedFile& staged, const Error& why) {
  PLAYFS_TRY(const bool is_gone, directory_.remove(path, as_known(path)));
  if (!is_gone) {
    result_.contested.push_back(path);
    return {};
  }
  Row row;
  row.kind = RowKind::refused;
  row.staged = staged.key;
  index_.put(path, std::move(row));
  index_.note_left_out(path, why.message);
  result_.left_out.push_back({path, why, true});
  return {};
}

PlainDirectory::MayGo BringOut::as_known(const std::string& path) const {
  const Row* known = index_.find(path);
  const bool is_expected = known && known->has_content() && !known->is_begun;
  const Row row = is_expected ? *known : Row();
  return
      [row, is_expected, looked = index_.looked()](const std::optional<struct stat>& info, int file) -> Result<bool> {
        if (!info || !is_expected) return !info && !is_expected;
        const Signature now = signature_of(*info);
        if (!now.is_but_renamed(row.seen)) return false;
        if (file < 0 || (now == row.seen && !now.is_racy(looked))) return true;
        PLAYFS_TRY(const ContentHash hash, hash_of_file(file));
        return hash == row.hash;
      };
}

}  // namespace playfs::clone
