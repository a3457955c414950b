#include "content/records.h"

#include "base/text.h"
#include "model/ids.h"
#include "model/memory.h"

namespace playfs::content {

namespace {
bool never_changes(const std::string& collection) { return collection == "revisions" || collection == "file_chunks"; }

std::string key_of(const std::string& collection, const std::string& id) { return collection + "/" + id; }
}  // namespace

void Records::get(const std::string& collection, const std::string& id, const CancelToken& cancel,
                  Callback<RecordPtr> done) {
  if (id.empty() || id.size() > kMaxIdLength)
    return done(fail(ErrorCode::not_found, "not a valid record id: " + escape_for_terminal(id)));
  RecordAtOnce here;
  if (never_changes(collection)) here = context_.stored_at_once(collection, id);
  if (here.record) return done(std::make_shared<const Record>(std::move(*here.record)));

  const std::string key = key_of(collection, id);
  if (!flights_.join(key, cancel, std::move(done))) return;
  if (!here.takes_long) return ask(collection, id);
  context_.large.post(context_.guarded([this, collection, id, key] {
    if (flights_.abandon(key)) return;
    auto record = context_.stored(collection, id);
    if (record) flights_.land(key, std::make_shared<const Record>(std::move(*record)));
    else ask(collection, id);
  }));
}

void Records::ask(const std::string& collection, const std::string& id) {
  const std::string key = key_of(collection, id);
  auto arrived = [this, collection, id, key, question = context_.patience.ask(key)](Result<Record> answer) mutable {
    question.reset();
    Result<RecordPtr> result = fail(ErrorCode::internal, "");
    if (answer) {
      context_.store(collection, *answer);
      result = std::make_shared<const Record>(std::move(*answer));
    } else {
      auto old = is_away(answer.error()) ? context_.stored(collection, id) : std::nullopt;
      if (answer.error().code == ErrorCode::not_found) context_.records.forget_record(context_.site, collection, id);
      if (old) result = std::make_shared<const Record>(std::move(*old));
      else result = fail(std::move(answer).error());
    }
    flights_.land(key, result);
  };
  turns_.take(
      collection, context_.guarded([this, collection, id, key, arrived = std::move(arrived)](Turns::Turn turn) mutable {
        if (flights_.abandon(key)) return;
        auto ended = [turn = std::move(turn), arrived = std::move(arrived)](Result<Record> answer) mutable {
          turn.reset();
          arrived(std::move(answer));
        };
        context_.client.get_record(collection, id, context_.stop.token(), context_.answered<Record>(std::move(ended)));
      }));
}

RecordAtOnce Records::known_part(const std::string& collection, const std::string& id, Reduce reduce,
                                 bool reads_large) {
  auto stored = context_.records.record(context_.site, collection, id);
  if (!stored) return {};
  if (!reads_large && stored->text.size() > kParsedAtOnce) return {std::nullopt, true};
  const std::string key = key_of(collection, id);
  const ContentHash hash = ContentHash::of(stored->text);
  std::shared_ptr<const Record> part;
  {
    MutexLock lock(mutex_);
    if (const Part* kept = parts_.find(key); kept && kept->of == hash && kept->reduce == reduce) part = kept->record;
  }
  if (part) return {*part};
  auto record = Context::read(*stored, id);
  if (!record) return {};
  part = std::make_shared<const Record>(reduce(*record));
  const std::size_t cost = memory_of(*part);
  std::vector<Part> evicted;  // destroyed after the lock is released
  MutexLock lock(mutex_);
  evicted = parts_.insert(key, {hash, reduce, part}, cost);
  return {*part};
}

}  // namespace playfs::content
