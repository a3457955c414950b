#include "app/work_edits.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/work_files.h"
#include "model/path.h"

namespace playfs::app {

namespace {

/// The error, with what was done before it.
Error after(const std::vector<std::string>& done, Error error) {
  constexpr std::size_t kMostNamed = 5;
  for (std::size_t i = 0; i < std::min(done.size(), kMostNamed); ++i)
    error.message += (i == 0 ? "; done before that: " : ", ") + done[i];
  if (done.size() > kMostNamed) error.message += fmt::format(" and {} more", done.size() - kMostNamed);
  return error;
}

}  // namespace

FileStateNow state_of(const FileEntry* entry, const std::optional<std::string>& content) {
  if (!entry || !content) return std::nullopt;
  return FileState{entry->mode, ContentHash::of(*content)};
}

Result<FileStateNow> state_at(const ReadableTree& tree, const std::string& path) {
  PLAYFS_TRY(const auto entry, tree.entry_at(path));
  if (!entry) return FileStateNow();
  PLAYFS_TRY(const auto content, tree.content(path, &*entry));
  return state_of(&*entry, content);
}

bool WorkEdits::put(const std::string& path, FileMode mode, const std::string& source_path, FileStateNow now) {
  return edits_.emplace(path, Edit{false, mode, std::nullopt, source_path, now}).second;
}

bool WorkEdits::put_text(const std::string& path, FileMode mode, std::string text, FileStateNow now) {
  return edits_.emplace(path, Edit{false, mode, std::move(text), {}, now}).second;
}

bool WorkEdits::remove(const std::string& path, FileStateNow now) {
  return edits_.emplace(path, Edit{true, FileMode::regular, std::nullopt, {}, now}).second;
}

std::vector<std::string> WorkEdits::put_paths() const {
  std::vector<std::string> paths;
  for (const auto& [path, edit] : edits_)
    if (!edit.removes) paths.push_back(path);
  return paths;
}

std::vector<std::string> WorkEdits::removed_paths() const {
  std::vector<std::string> paths;
  for (const auto& [path, edit] : edits_)
    if (edit.removes) paths.push_back(path);
  return paths;
}

bool WorkEdits::removes(const std::string& path) const {
  auto found = edits_.find(path);
  return found != edits_.end() && found->second.removes;
}

/// Files in place of the directories above, and directories with files in place of the file.
Status WorkEdits::check_way(const std::string& path) const {
  for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string above = path.substr(0, slash);
    PLAYFS_TRY(const auto entry, work_.entry_at(above));
    if (entry && !removes(above))
      return fail(ErrorCode::conflict, fmt::format("'{}' is in the way of '{}'", above, path), "move it away first");
  }
  PLAYFS_TRY(const Manifest below, work_.list(path));
  for (const auto& [file, entry] : below.files)
    if (file != path && !removes(file))
      return fail(ErrorCode::conflict, fmt::format("'{}' is a directory now, with '{}' in it", path, file),
                  "move it away first");
  return {};
}

Result<std::string> WorkEdits::content_of(const Edit& edit) const {
  if (edit.text) return *edit.text;
  PLAYFS_TRY(const auto entry, source_.entry_at(edit.source_path));
  PLAYFS_TRY(auto content, source_.content(edit.source_path, entry ? &*entry : nullptr));
  if (!content) return fail(ErrorCode::not_found, fmt::format("the revision has lost '{}'", edit.source_path));
  return *std::move(content);
}

Status WorkEdits::check_unchanged(const std::string& path, const Edit& edit) const {
  PLAYFS_TRY(const FileStateNow now, state_at(work_, path));
  if (now == edit.now) return {};
  return fail(ErrorCode::conflict, fmt::format("'{}' was changed meanwhile", path), "run the command again");
}

Status WorkEdits::check_ways() const {
  for (const auto& [path, edit] : edits_)
    if (!edit.removes) PLAYFS_CHECK(check_way(path));
  return {};
}

Status WorkEdits::carry_out() {
  PLAYFS_CHECK(check_ways());
  for (const auto& [path, edit] : edits_) {
    if (edit.removes) continue;
    PLAYFS_TRY([[maybe_unused]] const std::string content, content_of(edit));  // and it is in the cache now
  }
  PLAYFS_TRY(const WorkFiles files, WorkFiles::open(root_));
  std::vector<std::string> done;
  auto carry_out_one = [&](const std::string& path, const Edit& edit) -> Status {
    if (edit.removes) {
      PLAYFS_CHECK(check_unchanged(path, edit));
      PLAYFS_CHECK(files.remove(path));
      return files.remove_empty_directories_above(path);
    }
    PLAYFS_TRY(const std::string content, content_of(edit));
    return files.replace(path, edit.mode, content, [&] { return check_unchanged(path, edit); });
  };
  for (const bool removing : {true, false}) {  // a directory may have to make way for a file
    for (const auto& [path, edit] : edits_) {
      if (edit.removes != removing) continue;
      Status carried_out = carry_out_one(path, edit);
      if (!carried_out) return fail(after(done, carried_out.error()));
      done.push_back(path);
    }
  }
  return {};
}

}  // namespace playfs::app
