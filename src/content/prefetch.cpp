#include "content/prefetch.h"

#include <algorithm>

#include "model/chunking.h"

namespace playfs::content {

void Prefetch::start(const RevisionTreePtr& revision) {
  if (!context_.options.prefetch) return;
  {
    MutexLock lock(mutex_);
    if (asked_for_.find(revision->revision.id)) return;
    static_cast<void>(asked_for_.insert(revision->revision.id, true));
  }
  context_.executor.post(context_.guarded([this, revision] {
    enqueue(revision);
    go_on();
  }));
}

void Prefetch::enqueue(const RevisionTreePtr& revision) {
  std::size_t chunks = 0;
  std::uint64_t bytes = 0;
  MutexLock lock(mutex_);
  for (const auto& [path, entry] : revision->tree.manifest().files) {
    if (entry.chunks.empty()) continue;
    chunks += entry.chunks.size();
    // A claim of less than its chunks may hold would be a way around the ceiling.
    bytes += std::max<std::uint64_t>(entry.size_claim.value_or(0), entry.chunks.size() * kMaxChunkText);
    if (chunks > context_.options.prefetch_chunks || bytes > context_.options.prefetch_bytes) break;
    waiting_.push_back({revision, path, &entry});
  }
  // Who walks through many projects has long left the first ones.
  while (waiting_.size() > kMostWaiting) waiting_.pop_front();
}

std::optional<FileRef> Prefetch::take_next() {
  const std::size_t parallel = context_.parallel_chunks();
  MutexLock lock(mutex_);
  if (waiting_.empty() || begun_ >= 2 * parallel) return std::nullopt;
  FileRef file = std::move(waiting_.front());
  waiting_.pop_front();
  begun_ += file.entry->chunks.size();
  return file;
}

void Prefetch::go_on() {
  while (auto file = take_next()) {
    const std::size_t chunks = file->entry->chunks.size();
    // Errors are told where they arise; what is missing is fetched again when somebody reads it.
    blobs_.get(*file, Urgency::ahead, {}, context_.guarded([this, chunks](const Result<Blob>&) { landed(chunks); }));
  }
}

void Prefetch::landed(std::size_t chunks) {
  {
    MutexLock lock(mutex_);
    begun_ -= chunks;
    if (waiting_.empty()) return;
  }
  // Posted, not called: content that is here already answers within go_on.
  context_.executor.post(context_.guarded([this] { go_on(); }));
}

}  // namespace playfs::content
