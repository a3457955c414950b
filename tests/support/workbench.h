// A stage over bases that a test defines as text, with the operations of a program that uses it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/text.h"
#include "model/chunking.h"
#include "stage/stage.h"
#include "support/manual_time.h"
#include "support/temporary_directory.h"

namespace playfs::test {

/// A published file: its bytes and mode.
struct Text {
  Text(const char* content) : content(content) {}
  Text(std::string content, FileMode mode = FileMode::regular) : content(std::move(content)), mode(mode) {}
  std::string content;
  FileMode mode = FileMode::regular;
  bool operator==(const Text&) const = default;
};
using Texts = std::map<std::string, Text>;

/// Inline, as a playfs client publishes it.
inline FileEntry entry_of(const Text& text) {
  FileEntry entry;
  entry.hash_claim = ContentHash::of(text.content).hex();
  entry.size_claim = text.content.size();
  entry.mode = text.mode;
  entry.encoding = encoding_for(text.content);
  entry.inline_text = encode_content(text.content, entry.encoding);
  return entry;
}

inline RevisionTreePtr revision_of(const std::string& id, const Texts& files,
                                   WallTime created_at = {1'700'000'000'000'000'000}) {
  Revision revision;
  revision.id = RevisionId(id);
  revision.project = ProjectId("project");
  revision.created_at = created_at;
  revision.manifest.tx = "00000000000000000000000000000001";
  for (const auto& [path, text] : files) revision.manifest.files.emplace(path, entry_of(text));
  return std::make_shared<RevisionTree>(std::move(revision));
}

/// A merge that left these paths as they are.
inline stage::Merged handled(const std::set<std::string>& paths) {
  stage::Merged merged;
  for (const auto& path : paths) merged.paths.push_back({path, stage::MergedPath::Action::keep, {}, {}});
  return merged;
}

inline std::string text_of(const FileRef& file) { return file.entry->inline_content().value_or("<not inline>"); }

class Workbench {
  TemporaryDirectory directory_;

 public:
  [[nodiscard]] stage::StageOptions options() const {
    stage::StageOptions options;
    options.directory = directory_ / "stage";
    options.uid = 1000;
    options.gid = 1000;
    options.descriptors = 4;
    options.housekeeping = housekeeping;
    options.boot = boot;
    return options;
  }
  [[nodiscard]] std::string spool() const { return directory_ / "stage/spool"; }
  [[nodiscard]] std::size_t spool_files() const {
    auto listing = std::filesystem::directory_iterator(spool());
    return static_cast<std::size_t>(std::distance(begin(listing), end(listing)));
  }

  void open(RevisionTreePtr base) {
    stage.reset();
    auto opened = stage::Stage::open(options(), clock, std::move(base));
    ASSERT_TRUE(opened) << opened.error().message;
    stage = std::move(*opened);
  }
  /// Closes and reopens it on its current base, as an unmount and a mount do.
  void reopen() { open(stage->base()); }

  /// From whatever its base is.
  Result<std::vector<stage::Invalidation>> move_base(RevisionTreePtr base) {
    return stage->move_base(std::move(base), id_of(stage->base()));
  }

  /// nullptr if there is nothing.
  stage::InodePtr find(std::string_view path) {
    stage::InodePtr at = stage->root();
    while (at && !path.empty()) {
      auto slash = path.find('/');
      auto next = stage->lookup(at, path.substr(0, slash));
      at = next ? *next : nullptr;
      path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    }
    return at;
  }
  stage::InodePtr parent(std::string_view path) {
    auto slash = path.rfind('/');
    return find(slash == std::string_view::npos ? "" : path.substr(0, slash));
  }
  static std::string_view name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

  /// As a file system does: bytes that are still below are copied up first.
  Result<std::string> read(const stage::InodePtr& inode) {
    if (auto lower = stage->lower_content(inode)) return text_of(*lower);
    return stage->read(inode, 0, 1 << 20);
  }
  Result<std::string> read(std::string_view path) {
    auto inode = find(path);
    if (!inode) return fail(ErrorCode::not_found, "no " + std::string(path));
    return read(inode);
  }
  Status copy_up(const stage::InodePtr& inode) {
    auto lower = stage->lower_content(inode);
    if (!lower) return {};
    std::string text = text_of(*lower);
    return stage->copy_up(inode, *lower, text.size(), [&](int fd) { return write_all_at(fd, text, 0); });
  }
  Status write(const stage::InodePtr& inode, std::uint64_t offset, std::string_view data) {
    PLAYFS_CHECK(copy_up(inode));
    PLAYFS_TRY(std::size_t written, stage->write(inode, offset, data));
    if (written != data.size()) return fail(ErrorCode::io, "a short write");
    return {};
  }
  Status truncate(const stage::InodePtr& inode, std::uint64_t size) {
    if (size > 0) PLAYFS_CHECK(copy_up(inode));
    stage::AttributeChange change;
    change.size = size;
    PLAYFS_TRY([[maybe_unused]] auto attributes, stage->set_attributes(inode, change));
    return {};
  }
  Status chmod(std::string_view path, unsigned permissions) {
    stage::AttributeChange change;
    change.permissions = permissions;
    PLAYFS_TRY([[maybe_unused]] auto attributes, stage->set_attributes(find(path), change));
    return {};
  }
  /// Creates or truncates the file, like `echo > path`.
  Status put(std::string_view path, std::string_view data) {
    auto inode = find(path);
    if (inode) {
      PLAYFS_CHECK(truncate(inode, 0));
    } else {
      PLAYFS_TRY(inode, stage->make_file(parent(path), name(path), {}));
    }
    return data.empty() ? Status() : write(inode, 0, data);
  }
  Status mkdir(std::string_view path) {
    PLAYFS_TRY([[maybe_unused]] auto made, stage->make_directory(parent(path), name(path), {0755, 1, 1}));
    return {};
  }
  Status symlink(std::string_view target, std::string_view path) {
    PLAYFS_TRY([[maybe_unused]] auto made, stage->make_symlink(parent(path), name(path), target, {0777, 1, 1}));
    return {};
  }
  Status link(std::string_view path, std::string_view new_path) {
    return stage->link(find(path), parent(new_path), name(new_path));
  }
  Status unlink(std::string_view path) { return stage->unlink(parent(path), name(path)); }
  Status rmdir(std::string_view path) { return stage->remove_directory(parent(path), name(path)); }
  Status rename(std::string_view path, std::string_view new_path, stage::RenameMode mode = stage::RenameMode::replace) {
    return stage->rename(parent(path), name(path), parent(new_path), name(new_path), mode);
  }
  stage::Attributes stat(std::string_view path) { return stage->attributes(find(path)).value(); }

  std::vector<std::string> list(std::string_view path) {
    std::vector<std::string> names;
    auto entries = stage->list(find(path), 0, 1'000'000);
    for (const auto& entry : *entries) names.push_back(entry.name);
    std::sort(names.begin(), names.end());
    return names;
  }
  /// Every file and link of the tree.
  Texts files(const std::string& below = "") {
    Texts all;
    for (const auto& each : list(below)) {
      std::string path = below.empty() ? each : below + "/" + each;
      auto inode = find(path);
      auto attributes = stage->attributes(inode).value();
      if (attributes.kind == stage::Kind::directory) {
        all.merge(files(path));
      } else if (attributes.kind == stage::Kind::symlink) {
        auto lower = stage->lower_content(inode);
        all.emplace(path, Text(lower ? text_of(*lower) : stage->symlink_target(inode).value(), FileMode::symlink));
      } else if (attributes.kind == stage::Kind::file) {
        bool runs = (attributes.permissions & 0100) != 0;
        all.emplace(path,
                    Text(read(inode).value_or("<cannot be read>"), runs ? FileMode::executable : FileMode::regular));
      }
    }
    return all;
  }
  /// "A path", "M path" or "D path", followed by "*" if pending.
  std::vector<std::string> changes() {
    std::vector<std::string> lines;
    auto changes = stage->changes();
    if (!changes) return {changes.error().message};
    for (const auto& change : *changes) {
      std::string line = change.kind == stage::ChangeKind::added      ? "A "
                         : change.kind == stage::ChangeKind::modified ? "M "
                                                                      : "D ";
      lines.push_back(line + change.path + (change.pending ? "*" : ""));
    }
    return lines;
  }
  /// The tree after publishing a frozen layer on `on`.
  Texts published(const stage::Frozen& layer, Texts on) {
    for (const auto& path : layer.deletions) on.erase(path);
    for (const auto& file : layer.files) {
      std::string content =
          file.published ? file.published->inline_content().value() : stage->read_frozen(file).value();
      EXPECT_TRUE(file.published || ContentHash::of(content) == file.hash) << file.path;
      on.insert_or_assign(file.path, Text(std::move(content), file.mode));
    }
    return on;
  }

  ManualClock clock;
  std::unique_ptr<stage::Stage> stage;
  std::uint64_t boot = 1;  ///< for the next open(); a different one after a power loss
  /// For the next open(). Immediate, so that what is left on disk can be counted; frequent, so that it happens at all.
  stage::Housekeeping housekeeping = {
      .log_bytes = 4000, .removals = 1, .patience = std::chrono::milliseconds(0), .own_thread = false};
};

}  // namespace playfs::test
