#include "vfs/control/growing_file.h"

#include <sys/stat.h>

#include "vfs/ino.h"
#include "vfs/mount.h"

namespace playfs::vfs {
namespace {

constexpr std::size_t kLongest = 4 << 20;
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
                         std::function<void()> looked)
    : Node(mount, std::move(parent), std::move(name)),
      looked_(std::move(looked)),
      text_(std::move(text)),
      reading_(reading),
      changed_(mount.clock().wall()),
      shown_size_(text_.size()) {}

std::uint64_t GrowingFile::ino() const { return ino_below(parent()->ino(), name() + "\n" + std::to_string(id())); }

bool GrowingFile::grow_to(const std::string& text, std::uint64_t reading) {
  std::uint64_t before = 0;
  {
    MutexLock lock(mutex_);
    if (reading < reading_) return true;
    reading_ = reading;
    if (!text.starts_with(text_) || text.size() > kLongest) return false;
    if (text.size() == text_.size()) return true;
    before = text_.size();
    text_ = text;
    changed_ = mount().clock().wall();
  }
  grown(before, text.size());
  return true;
}

bool GrowingFile::shows_its_size() const {
  MutexLock lock(mutex_);
  return shown_size_ >= text_.size();
}

bool GrowingFile::follow(const std::string& latest) {
  std::uint64_t before = 0, after = 0;
  {
    MutexLock lock(mutex_);
    auto more = lines_after(text_, latest);
    if (!more || text_.size() + more->size() > kLongest) return false;
    if (more->empty()) return true;
    before = text_.size();
    text_ += *more;
    after = text_.size();
    changed_ = mount().clock().wall();
  }
  grown(before, after);
  return true;
}

void GrowingFile::grown(std::uint64_t before, std::uint64_t after) {
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
  return offset >= text_.size() ? std::string() : text_.substr(offset, size);
}

}  // namespace playfs::vfs
