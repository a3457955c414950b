#include "content/chunks.h"

#include "base/text.h"
#include "wire/records.h"

namespace playfs::content {

namespace {
constexpr const char* kCollection = "file_chunks";
}

ChunkPtr Chunks::known(const ChunkId& id) const {
  auto record = context_.stored(kCollection, id.text());
  if (!record) return nullptr;
  auto chunk = wire::decode_chunk(std::move(*record));
  return chunk ? std::make_shared<const FileChunk>(std::move(*chunk)) : nullptr;
}

void Chunks::get(const ChunkId& id, Urgency urgency, const CancelToken& cancel, Callback<ChunkPtr> done) {
  if (!flights_.join(id, cancel, std::move(done))) {
    if (urgency == Urgency::demand) hurry({&id, 1});
    return;
  }
  if (auto chunk = known(id)) return flights_.land(id, chunk);
  {
    MutexLock lock(mutex_);
    queued_.insert(id);
    (urgency == Urgency::demand ? demanded_ : ahead_).push_back(id);
  }
  send_next();
}

void Chunks::hurry(std::span<const ChunkId> ids) {
  MutexLock lock(mutex_);
  for (const auto& id : ids)
    if (queued_.contains(id)) demanded_.push_back(id);
}

void Chunks::forget(std::span<const ChunkId> ids) {
  for (const auto& id : ids) context_.records.forget_record(context_.site, kCollection, id.text());
}

std::optional<ChunkId> Chunks::take_next() {
  const std::size_t most = context_.parallel_chunks();
  MutexLock lock(mutex_);
  // A few places are kept for those who wait.
  const std::size_t most_ahead = most - most / 8;
  for (auto [queue, limit] : {std::pair(&demanded_, most), std::pair(&ahead_, most_ahead)}) {
    while (!queue->empty() && under_way_ < limit) {
      ChunkId id = std::move(queue->front());
      queue->pop_front();
      if (queued_.erase(id) == 0) continue;
      ++under_way_;
      return id;
    }
  }
  return std::nullopt;
}

void Chunks::send_next() {
  while (auto id = take_next()) {
    if (flights_.abandon(*id)) {
      MutexLock lock(mutex_);
      --under_way_;
      continue;
    }
    context_.client.get_record(
        kCollection, id->text(), context_.stop.token(),
        context_.answered<Record>([this, id = *id](Result<Record> answer) { arrived(id, std::move(answer)); }));
  }
}

void Chunks::arrived(const ChunkId& id, Result<Record> answer) {
  {
    MutexLock lock(mutex_);
    --under_way_;
  }
  send_next();
  flights_.land(id, decode(id, std::move(answer)));
}

Result<ChunkPtr> Chunks::decode(const ChunkId& id, Result<Record> answer) {
  const std::string what = "chunk " + escape_for_terminal(id.text());
  if (!answer) return fail(answer.error().while_doing(what));
  auto chunk = wire::decode_chunk(*answer);
  if (!chunk) return fail(chunk.error().while_doing(what));
  context_.store(kCollection, *answer);
  return std::make_shared<const FileChunk>(std::move(*chunk));
}

}  // namespace playfs::content
