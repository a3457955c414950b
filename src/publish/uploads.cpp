#include "publish/uploads.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "publish/rest.h"
#include "wire/json.h"

namespace playfs::publish {

namespace {

/// Where answers arrive, from threads of the client's.
template <class T>
class Answers {
 public:
  struct Answer {
    std::size_t index = 0;
    Result<T> result;
  };

  void add(std::size_t index, Result<T> result) {
    MutexLock lock(mutex_);
    answers_.push_back({index, std::move(result)});
    arrived_.notify_one();
  }
  /// Waits for at least one.
  std::vector<Answer> take() {
    MutexLock lock(mutex_);
    while (answers_.empty()) arrived_.wait(mutex_);
    return std::exchange(answers_, {});
  }

 private:
  Mutex mutex_;
  Condition arrived_;
  std::vector<Answer> answers_ PLAYFS_GUARDED_BY(mutex_);
};

/// Starts `count` operations, `parallel` of them at once, and hands their answers to `take` in batches. After an error
/// of `take` no further one is started.
template <class T, class Start, class Take>
Status run_parallel(std::size_t count, std::size_t parallel, const Start& start, const Take& take) {
  auto answers = std::make_shared<Answers<T>>();  // a late answer may outlive this call's stack, not its state
  std::size_t next = 0, outstanding = 0;
  std::optional<Error> failed;
  while (outstanding > 0 || (next < count && !failed)) {
    for (; next < count && outstanding < parallel && !failed; ++next, ++outstanding)
      start(next, Callback<T>([answers, index = next](Result<T> result) { answers->add(index, std::move(result)); }));
    auto batch = answers->take();
    outstanding -= batch.size();
    if (Status taken = take(std::move(batch)); !taken && (!failed || may_heal(failed->code))) failed = taken.error();
  }
  if (failed) return fail(*std::move(failed));
  return {};
}

/// The service must have kept the text: what it changed could not be put together again.
Status check_kept(const Record& record, const Json& sent) {
  const Json* kept = record.fields.find("content");
  if (kept && sent.object() && *kept != *sent.object()->find("content"))
    return fail(ErrorCode::corrupt, fmt::format("the service stored chunk {} with another text", record.id));
  return {};
}

}  // namespace

Status send_uploads(content::Site& site, const std::vector<Upload>& uploads, std::size_t parallel,
                    const CancelToken& cancel, const Acknowledged& acknowledged) {
  std::vector<Upload> missing;
  std::vector<Json> bodies;
  for (const auto& upload : uploads) {
    if (!upload.chunk.empty()) continue;
    PLAYFS_TRY(auto body, wire::parse_json(upload.body));
    missing.push_back(upload);
    bodies.push_back(std::move(body));
  }
  auto start = [&](std::size_t index, Callback<Record> done) {
    site.client().create_record("file_chunks", bodies[index], missing[index].key, cancel, std::move(done));
  };
  auto take = [&](std::vector<Answers<Record>::Answer> batch) -> Status {
    std::vector<Upload> stored;
    std::optional<Error> failed;
    for (auto& [index, result] : batch) {
      Status kept = result ? check_kept(*result, bodies[index]) : Status(fail(result.error()));
      if (kept) {
        if (result->fields.find("content")) site.learn("file_chunks", *result);
        stored.push_back(missing[index]);
        stored.back().chunk = ChunkId(result->id);
      } else if (!failed || may_heal(failed->code)) {
        failed = kept.error().while_doing("store a chunk");
      }
    }
    if (!stored.empty()) PLAYFS_CHECK(acknowledged(stored));
    if (failed) return fail(*std::move(failed));
    return {};
  };
  return run_parallel<Record>(missing.size(), parallel, start, take);
}

Result<std::vector<FileChunk>> fetch_chunks(remote::Client& client, const std::vector<ChunkId>& ids,
                                            std::size_t parallel, const CancelToken& cancel) {
  std::vector<FileChunk> chunks(ids.size());
  auto start = [&](std::size_t index, Callback<FileChunk> done) {
    client.get_chunk(ids[index], cancel, std::move(done));
  };
  auto take = [&](std::vector<Answers<FileChunk>::Answer> batch) -> Status {
    Status all;
    for (auto& [index, result] : batch) {
      if (result) chunks[index] = *std::move(result);
      else all = fail(std::move(result).error());
    }
    return all;
  };
  PLAYFS_CHECK(run_parallel<FileChunk>(ids.size(), parallel, start, take));
  return chunks;
}

}  // namespace playfs::publish
