#include "clone/scan.h"

#include <fcntl.h>

#include <cerrno>
#include <unordered_set>

#include "clone/names.h"

namespace playfs::clone {

namespace {

class Scan {
 public:
  Scan(const PlainDirectory& directory, const Index& index) : directory_(directory), index_(index) {}

  Result<Scanned> run() {
    // One directory is open at a time: a tree may be deeper than there are descriptors.
    for (left_ = {""}; !left_.empty();) {
      const std::string path = std::move(left_.back());
      left_.pop_back();
      Status looked = look_into(path);
      // Without the root, nothing is known.
      if (!looked && (path.empty() || !is_about_access(looked.error().code))) return fail(looked.error());
      if (!looked) leave_unread(path, looked.error());
    }
    for (auto row = index_.rows().rbegin(); row != index_.rows().rend(); ++row)
      if (row->second.kind != RowKind::refused && !here_.contains(&row->second)) found_.gone.push_back(row->first);
    return std::move(found_);
  }

 private:
  Status look_into(const std::string& path) {
    PLAYFS_TRY(auto opened, directory_.directory(path));
    if (!opened) return {};  // it has just gone: the rows in it were not found
    PLAYFS_TRY(const auto names, PlainDirectory::names(opened->get(), path));
    for (const Name& name : names) PLAYFS_CHECK(look_at(opened->get(), path, name));
    return {};
  }

  void leave_unread(const std::string& path, const Error& why) {
    found_.unread.push_back({path, why.message});
    const std::string below = path + "/";
    for (auto row = index_.rows().lower_bound(below); row != index_.rows().end() && row->first.starts_with(below);
         ++row)
      here_.insert(&row->second);
  }

  Status look_at(int directory, const std::string& path, const Name& name) {
    if (name.is_other || (path.empty() && name.text == kStateFolder)) return {};
    std::string whole = joined(path, name.text);
    const Row* row = index_.find(whole);
    if (row && row->kind == RowKind::local_only && S_ISDIR(row->seen.mode) == name.is_directory) {
      here_.insert(row);
      found_.local_only.push_back(std::move(whole));
      return {};
    }
    if (name.is_directory) {
      const bool is_known = row && row->kind == RowKind::directory;
      if (is_known && row->is_begun) here_.insert(row), found_.changed.push_back({std::move(whole), true});
      else if (is_known) here_.insert(row), left_.push_back(std::move(whole));
      else found_.changed.push_back({std::move(whole), true});
      return {};
    }
    if (row && row->has_content()) {
      struct stat info {};
      if (fstatat(directory, name.text.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return {};
        return fail(error_from_errno(errno, "stat " + whole));
      }
      here_.insert(row);
      if (!row->is_begun && signature_of(info) == row->seen && !row->seen.is_racy(index_.looked())) return {};
    }
    found_.changed.push_back({std::move(whole), false});
    return {};
  }

  const PlainDirectory& directory_;
  const Index& index_;
  std::vector<std::string> left_;
  std::unordered_set<const Row*> here_;
  Scanned found_;
};

}  // namespace

Result<Look> look(const PlainDirectory& directory, const Index& index) {
  PLAYFS_TRY(const std::int64_t began, directory.now());
  PLAYFS_TRY(Scanned found, Scan(directory, index).run());
  return Look{began, std::move(found)};
}

}  // namespace playfs::clone
