#include "vfs/control/growing_file.h"

#include <sys/stat.h>

#include "vfs/ino.h"
#include "vfs/mount.h"

namespace playfs::vfs {
namespace {

/// What a stranger who never stops may take of the disk.
constexpr std::uint64_t kLongest = 1 << 30;
constexpr std::uint64_t kPage = 4096;

}  // namespace

std::optional<std::string> lines_after(const std::string& text, const std::string& latest) {
  if (text.empty()) return latest;
  // Lines start with a timestamp in microseconds, so the last line here identifies the seam in `latest`.
  std::size_t last = text.size() < 2 ? std::string::npos : text.rfind('\n', text.size() - 2);
  std::string_view line = std::string_view(text).substr(last == std::string::npos ? 0 : last + 1);
  for (std::size_t at = latest.rfind(line); at != std::string::npos;
       at = at == 0 ? std::string::npos : latest.rfind(line, at - 1)) {
    if (at == 0 || latest[at - 1] == '\n') return latest.substr(at + line.size());
  }
  return std::nullopt;
}

GrowingFile::GrowingFile(Mount& mount, NodePtr parent, std::string name, std::string text, std::uint64_t reading,
                         GrowingBasisPtr basis, std::function<void()> looked)
    : Node(mount, std::move(parent), std::move(name)),
      looked_(std::move(looked)),
      text_(mount.options().state_directory, std::move(text)),
      shown_{std::move(basis), reading},
      changed_(mount.clock().wall()),
      shown_size_(text_.size()) {}

std::uint64_t GrowingFile::ino() const { return ino_below(parent()->ino(), name() + "\n" + std::to_string(id())); }

bool GrowingFile::grow_to(const std::string& text, std::uint64_t reading, const GrowingBasisPtr& basis) {
  MutexLock lock(mutex_);
  if (reading < shown_.reading) return true;
  const std::string* known = text_.in_memory();
  if (!known || !text.starts_with(*known) || text.size() > GrowingText::kInMemory) return false;
  const std::uint64_t before = known->size();
  if (!text_.append(std::string_view(text).substr(before))) return false;
  shown_ = {basis, reading};
  grown(before);
  return true;
}

bool GrowingFile::shows_its_size() const {
  MutexLock lock(mutex_);
  return shown_size_ >= text_.size();
}

GrowingFile::Shown GrowingFile::shown() const {
  MutexLock lock(mutex_);
  return shown_;
}

Status GrowingFile::append(const GrowingBasisPtr& was, const std::string& more, Shown now) {
  MutexLock lock(mutex_);
  if (shown_.basis != was) return {};
  const std::uint64_t before = text_.size();
  if (before + more.size() > kLongest) return fail(ErrorCode::file_too_big, "a file that is followed is too long");
  PLAYFS_CHECK(text_.append(more));
  shown_ = std::move(now);
  grown(before);
  return {};
}

bool GrowingFile::follow(const std::string& latest) {
  MutexLock lock(mutex_);
  const std::string* known = text_.in_memory();
  auto more = known ? lines_after(*known, latest) : std::nullopt;
  if (!more || text_.size() + more->size() > GrowingText::kInMemory) return false;
  const std::uint64_t before = text_.size();
  if (!text_.append(*more)) return false;
  grown(before);
  return true;
}

void GrowingFile::grown(std::uint64_t before) {
  const std::uint64_t after = text_.size();
  if (after == before) return;
  changed_ = mount().clock().wall();
  // Under the lock: who sees that the size is not shown yet waits for what is queued here.
  mount().notifications().node_changed(id(), static_cast<std::int64_t>(before / kPage * kPage));
  std::weak_ptr<Node> weak = weak_from_this();
  mount().notifications().then(id(), [this, weak, after] {
    if (auto self = weak.lock()) shown_size_ = std::max<std::uint64_t>(shown_size_, after);
  });
}

Attempt<AttributesReply> GrowingFile::attributes(const OperationPtr&) {
  if (looked_) looked_();
  WallTime changed;
  {
    MutexLock lock(mutex_);
    changed = changed_;
  }
  return AttributesReply{mount().attributes(ino(), S_IFREG | 0444, shown_size_, changed), 0};
}

Attempt<std::string> GrowingFile::read(const OperationPtr&, std::uint64_t offset, std::size_t size) {
  MutexLock lock(mutex_);
  PLAYFS_ATTEMPT(std::string bytes, text_.read(offset, size));
  return bytes;
}

}  // namespace playfs::vfs
