#include "vfs/control/requests_under_way.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "base/log.h"
#include "vfs/control/request_file.h"

namespace playfs::vfs {
namespace {

/// How long an unmount waits for complete requests; by then the publisher has long journalled a commit.
constexpr std::chrono::seconds kLastRequests{3};

}  // namespace

void RequestsUnderWay::set_watcher(std::shared_ptr<CloseWatcher> watcher) {
  if (!watcher) settled(nullptr);
  MutexLock lock(mutex_);
  watcher_.swap(watcher);
}

std::shared_ptr<CloseWatcher> RequestsUnderWay::watcher() const {
  MutexLock lock(mutex_);
  return watcher_;
}

void RequestsUnderWay::add(const std::string& path, const std::shared_ptr<RequestFile>& file,
                           const RequestTextPtr& text) {
  MutexLock lock(mutex_);
  if (std::any_of(items_.begin(), items_.end(), [&](const Item& item) { return item.text == text; })) return;
  items_.push_back({path, file, text});
}

void RequestsUnderWay::remove(const RequestTextPtr& text) {
  Item last;  // may hold the last reference to a node; destroyed after the lock is released
  MutexLock lock(mutex_);
  auto found = std::find_if(items_.begin(), items_.end(), [&](const Item& item) { return item.text == text; });
  if (found == items_.end()) return;
  last = std::move(*found);
  items_.erase(found);
  ++removals_;
  changed_.notify_all();
}

std::int64_t RequestsUnderWay::next(WallTime now) { return last_order_ = std::max(last_order_ + 1, now.nanoseconds); }

bool RequestsUnderWay::start(const RequestTextPtr& text, WallTime now) {
  MutexLock lock(mutex_);
  return text->start(next(now));
}

std::int64_t RequestsUnderWay::next_order(WallTime now) {
  MutexLock lock(mutex_);
  return next(now);
}

RequestTextPtr RequestsUnderWay::running_before(const std::string& path, const RequestTextPtr& text) {
  RequestTextPtr before;
  MutexLock lock(mutex_);
  for (const Item& item : items_) {
    if (item.path != path || item.text->phase() != RequestText::Phase::running) continue;
    const std::int64_t order = item.text->order();
    if (order < text->order() && (!before || order > before->order())) before = item.text;
  }
  return before;
}

CloseWatcher::Watch RequestsUnderWay::expect(const std::shared_ptr<RequestFile>& file) {
  MutexLock lock(mutex_);
  expected_[next_watch_] = {file, false};
  return next_watch_++;
}

bool RequestsUnderWay::was_found(CloseWatcher::Watch watch) {
  MutexLock lock(mutex_);
  auto found = expected_.find(watch);
  if (found == expected_.end()) return false;
  const bool was = found->second.found;
  expected_.erase(found);
  return was;
}

std::shared_ptr<RequestFile> RequestsUnderWay::looked_for_by(pid_t thread) {
  auto watching = watcher();
  auto watch = watching ? watching->looked_up_by(thread) : std::nullopt;
  if (!watch) return nullptr;
  MutexLock lock(mutex_);
  auto expected = expected_.find(*watch);
  if (expected == expected_.end()) return nullptr;
  expected->second.found = true;
  return expected->second.file.lock();
}

std::vector<RequestsUnderWay::Item> RequestsUnderWay::settled(const std::string* path) {
  std::vector<Item> items;
  {
    MutexLock lock(mutex_);
    std::copy_if(items_.begin(), items_.end(), std::back_inserter(items),
                 [&](const Item& item) { return !path || item.path == *path; });
  }
  auto watching = watcher();
  for (const Item& item : items) {
    auto watched = item.text->watched();
    if (watching && watched.armed && item.text->phase() == RequestText::Phase::collecting &&
        watching->was_closed(watched.watch))
      item.file->begin(item.text);
  }
  return items;
}

RequestTextPtr RequestsUnderWay::awaited(const std::string& path, pid_t reader) {
  RequestTextPtr complete, written;
  for (const Item& item : settled(&path)) {
    const RequestText::Phase phase = item.text->phase();
    // A finished request is the last result by now, possibly already replaced by a later one.
    if (phase == RequestText::Phase::running) {
      if (!complete || item.text->order() > complete->order()) complete = item.text;
    } else if (phase == RequestText::Phase::collecting &&
               (item.text->writer().pid != reader || !item.text->watched().armed)) {
      written = item.text;
    }
  }
  return complete ? complete : written;
}

RequestTextPtr RequestsUnderWay::creating(const std::string& collection, const std::string* owner) {
  RequestTextPtr last;
  for (const Item& item : settled(nullptr)) {
    const bool is_under_way = item.text->phase() == RequestText::Phase::running && !item.text->is_answered();
    if (!is_under_way || !item.file->creates(collection, owner)) continue;
    if (!last || item.text->order() > last->order()) last = item.text;
  }
  return last;
}

bool RequestsUnderWay::is_written_by(const std::string& path, pid_t process) const {
  MutexLock lock(mutex_);
  return std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
    return item.path == path && item.text->writer().pid == process &&
           item.text->phase() == RequestText::Phase::collecting;
  });
}

void RequestsUnderWay::end() {
  const auto limit = std::chrono::steady_clock::now() + kLastRequests;
  std::vector<Item> left;
  for (;;) {
    std::uint64_t seen = 0;
    {
      MutexLock lock(mutex_);
      seen = removals_;
    }
    left = settled(nullptr);
    bool is_running = std::any_of(left.begin(), left.end(),
                                  [](const Item& item) { return item.text->phase() == RequestText::Phase::running; });
    auto rest = limit - std::chrono::steady_clock::now();
    if (!is_running || rest <= rest.zero()) break;
    MutexLock lock(mutex_);
    if (removals_ == seen) changed_.wait_for(mutex_, rest);
  }
  for (const Item& item : left) {
    if (item.text->phase() != RequestText::Phase::collecting) continue;
    log_warning(item.path + " was still being written when the mount ended: it was not sent");
    item.file->refuse(item.text,
                      {ErrorCode::interrupted, "the mount ended while the request was being written: it was not sent",
                       "nothing need be done: the next mount saves it, and says where"});
  }
  std::vector<Item> items;
  MutexLock lock(mutex_);
  items.swap(items_);
}

}  // namespace playfs::vfs
