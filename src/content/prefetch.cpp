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
  Account& account = accounts_[revision->revision.project];
  for (const auto& [path, entry] : revision->tree.manifest().files) {
    if (entry.chunks.empty()) continue;
    chunks += entry.chunks.size();
    // A claim below what its chunks may hold would bypass the limit.
    bytes += std::max<std::uint64_t>(entry.size_claim.value_or(0), entry.chunks.size() * kMaxChunkText);
    if (chunks > context_.options.prefetch_chunks || bytes > context_.options.prefetch_bytes) break;
    account.waiting.push_back({revision, path, &entry});
    ++waiting_;
  }
  while (waiting_ > kMostWaiting) forget_oldest();
  if (account.waiting.empty() && account.begun == 0) accounts_.erase(revision->revision.project);
}

/// From the project with the longest queue: a reader that visits many revisions has long passed its first files.
void Prefetch::forget_oldest() {
  auto longest = std::max_element(accounts_.begin(), accounts_.end(), [](const auto& a, const auto& b) {
    return a.second.waiting.size() < b.second.waiting.size();
  });
  longest->second.waiting.pop_front();
  --waiting_;
}

std::optional<FileRef> Prefetch::take_next() {
  const std::size_t most = 2 * context_.parallel_chunks();
  MutexLock lock(mutex_);
  auto next = accounts_.upper_bound(last_);
  for (std::size_t left = accounts_.size(); left > 0; --left) {
    if (next == accounts_.end()) next = accounts_.begin();
    auto& [project, account] = *next++;
    if (account.waiting.empty() || account.begun >= share_of(most, account.begun, begun_)) continue;
    FileRef file = std::move(account.waiting.front());
    account.waiting.pop_front();
    --waiting_;
    account.begun += file.entry->chunks.size();
    begun_ += file.entry->chunks.size();
    last_ = project;
    return file;
  }
  return std::nullopt;
}

void Prefetch::go_on() {
  while (auto file = take_next()) {
    const std::size_t chunks = file->entry->chunks.size();
    // Errors are logged where they occur; missing content is fetched again when read.
    blobs_.get(*file, Urgency::ahead, {},
               context_.guarded([this, project = file->revision->revision.project, chunks](const Result<Blob>&) {
                 landed(project, chunks);
               }));
  }
}

void Prefetch::landed(const ProjectId& project, std::size_t chunks) {
  {
    MutexLock lock(mutex_);
    begun_ -= chunks;
    auto found = accounts_.find(project);
    found->second.begun -= chunks;
    if (found->second.begun == 0 && found->second.waiting.empty()) accounts_.erase(found);
    if (waiting_ == 0) return;
  }
  // Posted instead of called, because content already here is answered within go_on().
  context_.executor.post(context_.guarded([this] { go_on(); }));
}

}  // namespace playfs::content
