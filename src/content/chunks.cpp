#include "content/chunks.h"

#include "base/text.h"
#include "wire/records.h"

namespace playfs::content {

namespace {
constexpr const char* kFileChunks = "file_chunks";
/// A request that took this long to fail is not repeated within the next moment.
constexpr std::chrono::seconds kLong{5};
constexpr std::chrono::seconds kMoment{1};
}  // namespace

ChunkPtr Chunks::known(const ChunkId& id) const {
  auto record = context_.stored(kFileChunks, id.text());
  if (!record) return nullptr;
  auto chunk = wire::decode_chunk(std::move(*record));
  return chunk ? std::make_shared<const FileChunk>(std::move(*chunk)) : nullptr;
}

void Chunks::get(const ChunkId& id, const ProjectId& project, Urgency urgency, const CancelToken& cancel,
                 Callback<ChunkPtr> done) {
  if (!flights_.join(id, cancel, std::move(done))) {
    if (urgency == Urgency::demand) hurry({&id, 1});
    return;
  }
  if (auto chunk = known(id)) return flights_.land(id, chunk);
  if (auto error = just_failed(id)) return flights_.land(id, fail(*std::move(error)));
  {
    MutexLock lock(mutex_);
    queued_.insert_or_assign(id, project);
    Account& account = accounts_[project];
    (urgency == Urgency::demand ? account.demanded : account.ahead).push_back(id);
  }
  send_next();
}

void Chunks::hurry(std::span<const ChunkId> ids) {
  {
    MutexLock lock(mutex_);
    for (const auto& id : ids)
      if (auto queued = queued_.find(id); queued != queued_.end()) accounts_[queued->second].demanded.push_back(id);
  }
  send_next();
}

void Chunks::forget(std::span<const ChunkId> ids) {
  for (const auto& id : ids) context_.records.forget_record(context_.site, kFileChunks, id.text());
}

std::optional<Chunks::Request> Chunks::take_next() {
  const std::size_t width = context_.parallel_chunks();
  MutexLock lock(mutex_);
  for (const Urgency urgency : {Urgency::demand, Urgency::ahead}) {
    auto next = accounts_.upper_bound(last_);
    for (std::size_t left = accounts_.size(); left > 0; --left) {
      if (next == accounts_.end()) next = accounts_.begin();
      auto& [project, account] = *next++;
      std::size_t most = share_of(width, account.under_way, under_way_);
      if (urgency == Urgency::ahead) most -= most / 8;  // reserve some places for demand
      auto& queue = urgency == Urgency::demand ? account.demanded : account.ahead;
      while (!queue.empty() && account.under_way < most) {
        ChunkId id = std::move(queue.front());
        queue.pop_front();
        if (queued_.erase(id) == 0) continue;
        ++account.under_way;
        ++under_way_;
        last_ = project;
        return Request{std::move(id), project, context_.clock.steady()};
      }
    }
  }
  return std::nullopt;
}

void Chunks::send_next() {
  while (auto request = take_next()) {
    if (flights_.abandon(request->id)) {
      ended(*request);
      continue;
    }
    context_.client.get_record(kFileChunks, request->id.text(), context_.gate->closing(),
                               context_.answered<Record>([this, request = *request](Result<Record> answer) {
                                 arrived(request, std::move(answer));
                               }),
                               request->project.text());
  }
}

void Chunks::ended(const Request& request) {
  MutexLock lock(mutex_);
  --under_way_;
  auto found = accounts_.find(request.project);
  Account& account = found->second;
  if (--account.under_way == 0 && account.demanded.empty() && account.ahead.empty()) accounts_.erase(found);
}

void Chunks::note_failure(const Request& request, const Error& error) {
  const SteadyTime now = context_.clock.steady();
  if (now - request.sent_at < kLong || error.code == ErrorCode::interrupted) return;
  MutexLock lock(mutex_);
  std::erase_if(failures_, [&](const auto& each) { return now - each.second.at >= kMoment; });
  failures_.insert_or_assign(request.id, Failure{error, now});
}

std::optional<Error> Chunks::just_failed(const ChunkId& id) {
  MutexLock lock(mutex_);
  auto found = failures_.find(id);
  if (found == failures_.end() || context_.clock.steady() - found->second.at >= kMoment) return std::nullopt;
  return found->second.error;
}

void Chunks::arrived(const Request& request, Result<Record> answer) {
  if (!answer) note_failure(request, answer.error());
  ended(request);
  send_next();
  flights_.land(request.id, decode(request.id, std::move(answer)));
}

Result<ChunkPtr> Chunks::decode(const ChunkId& id, Result<Record> answer) {
  const std::string what = "chunk " + escape_for_terminal(id.text());
  if (!answer) return fail(answer.error().while_doing(what));
  auto chunk = wire::decode_chunk(*answer);
  if (!chunk) return fail(chunk.error().while_doing(what));
  context_.store(kFileChunks, *answer);
  bytes_arrived_ += chunk->content.size();
  return std::make_shared<const FileChunk>(std::move(*chunk));
}

}  // namespace playfs::content
