// An append-only file that readers follow (`tail -f`): one node whose content only grows.
//
// The kernel caches its pages, and the last page is usually partial. So growth becomes visible in this order: the bytes
// become readable; the kernel drops its last page; stat shows the new size. A page read in between already holds the
// new bytes. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "base/mutex.h"
#include "vfs/node.h"

namespace playfs::vfs {

class GrowingFile final : public Node {
 public:
  /// `looked` is called whenever somebody looks at the file, and must not block.
  GrowingFile(Mount& mount, NodePtr parent, std::string name, std::string text, std::uint64_t reading = 0,
              std::function<void()> looked = {});

  /// A file that replaces another of the same name has an inode number of its own, by which `tail -F` notices.
  [[nodiscard]] std::uint64_t ino() const override;
  /// Grows to `text`, unless the file already shows a later reading. Each reading takes its number before it begins.
  /// Returns false if the text does not start with the file's content, or is too long: the name should then get a new
  /// file.
  [[nodiscard]] bool grow_to(const std::string& text, std::uint64_t reading) PLAYFS_EXCLUDES(mutex_);
  /// Whether stat shows the size of what can be read. If not, it will once the kernel has been notified.
  [[nodiscard]] bool shows_its_size() const PLAYFS_EXCLUDES(mutex_);

  /// Appends what `latest` (the log's bounded memory, oldest line first) has beyond this file's end. Returns false if
  /// the file would get too long or has missed lines: the name should then get a new file.
  [[nodiscard]] bool follow(const std::string& latest) PLAYFS_EXCLUDES(mutex_);

  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<std::string> read(const OperationPtr& op, std::uint64_t offset, std::size_t size) override;

 private:
  /// Tells the kernel that there are `after` bytes now instead of `before`.
  void grown(std::uint64_t before, std::uint64_t after);

  const std::function<void()> looked_;
  mutable Mutex mutex_;
  std::string text_ PLAYFS_GUARDED_BY(mutex_);
  std::uint64_t reading_ PLAYFS_GUARDED_BY(mutex_);  ///< the latest that the text is of
  WallTime changed_ PLAYFS_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> shown_size_;
};

/// What follows, in `latest`, after the last line of `text`; nullopt if `latest` does not contain that line.
std::optional<std::string> lines_after(const std::string& text, const std::string& latest);

}  // namespace playfs::vfs
