// An append-only file that readers follow (`tail -f`): one node whose content only grows.
//
// The kernel caches its pages, and the last page is usually partial. So growth becomes visible in this order: the bytes
// become readable; the kernel drops its last page; stat shows the new size. A page read in between already holds the
// new bytes. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "vfs/control/growing_text.h"
#include "vfs/node.h"

namespace playfs::vfs {

/// What a text is made of: from it follows what is new, and only that is rendered and appended. Immutable.
struct GrowingBasis {
  virtual ~GrowingBasis() = default;
};
using GrowingBasisPtr = std::shared_ptr<const GrowingBasis>;

class GrowingFile final : public Node {
 public:
  /// `looked` is called whenever somebody looks at the file, and must not block.
  GrowingFile(Mount& mount, NodePtr parent, std::string name, std::string text, std::uint64_t reading = 0,
              GrowingBasisPtr basis = nullptr, std::function<void()> looked = {});

  /// A file that replaces another of the same name has an inode number of its own, by which `tail -F` notices.
  [[nodiscard]] std::uint64_t ino() const override;
  /// Grows to `text`, unless the file already shows a later reading. Each reading takes its number before it begins.
  /// Returns false if the text does not start with the file's content, or is too long: the name should then get a new
  /// file.
  [[nodiscard]] bool grow_to(const std::string& text, std::uint64_t reading, const GrowingBasisPtr& basis)
      PLAYFS_EXCLUDES(mutex_);
  /// Whether stat shows the size of what can be read. If not, it will once the kernel has been notified.
  [[nodiscard]] bool shows_its_size() const PLAYFS_EXCLUDES(mutex_);

  /// What the text is made of now, and of which reading.
  struct Shown {
    GrowingBasisPtr basis;
    std::uint64_t reading = 0;
  };
  [[nodiscard]] Shown shown() const PLAYFS_EXCLUDES(mutex_);
  /// Appends `more`, which makes the text of `was` that of `now`. Does nothing if it is made of something else by now.
  /// Fails if the text cannot grow: the name should then get a new file.
  [[nodiscard]] Status append(const GrowingBasisPtr& was, const std::string& more, Shown now) PLAYFS_EXCLUDES(mutex_);

  /// Appends what `latest` (the log's bounded memory, oldest line first) has beyond this file's end. Returns false if
  /// the file would get too long or has missed lines: the name should then get a new file.
  [[nodiscard]] bool follow(const std::string& latest) PLAYFS_EXCLUDES(mutex_);

  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<std::string> read(const OperationPtr& op, std::uint64_t offset, std::size_t size) override;

 private:
  /// Tells the kernel that there are more bytes now than `before`.
  void grown(std::uint64_t before) PLAYFS_REQUIRES(mutex_);

  const std::function<void()> looked_;
  mutable Mutex mutex_;
  GrowingText text_ PLAYFS_GUARDED_BY(mutex_);
  Shown shown_ PLAYFS_GUARDED_BY(mutex_);
  WallTime changed_ PLAYFS_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> shown_size_;
};

/// What follows, in `latest`, after the last line of `text`; nullopt if `latest` does not contain that line.
std::optional<std::string> lines_after(const std::string& text, const std::string& latest);

}  // namespace playfs::vfs
