#include "content/records.h"

#include "base/text.h"
#include "model/ids.h"

namespace playfs::content {

namespace {
bool never_changes(const std::string& collection) { return collection == "revisions" || collection == "file_chunks"; }
}  // namespace

void Records::get(const std::string& collection, const std::string& id, const CancelToken& cancel,
                  Callback<Record> done) {
  if (id.empty() || id.size() > kMaxIdLength)
    return done(fail(ErrorCode::not_found, "not a valid record id: " + escape_for_terminal(id)));
  if (never_changes(collection))
    if (auto record = context_.stored(collection, id)) return done(std::move(*record));

  const std::string key = collection + "/" + id;
  using Shared = std::shared_ptr<const Record>;
  auto copied = [done = std::move(done)](Result<Shared> shared) mutable {
    if (shared) done(Record(**shared));
    else done(fail(std::move(shared).error()));
  };
  if (!flights_.join(key, cancel, std::move(copied))) return;
  auto arrived = [this, collection, id, key, question = context_.patience.ask(key)](Result<Record> answer) mutable {
    question.reset();
    Result<Shared> result = fail(ErrorCode::internal, "");
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

}  // namespace playfs::content
