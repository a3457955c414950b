#include "content/records.h"

#include <cstdint>

#include "base/text.h"
#include "model/ids.h"
#include "model/memory.h"

namespace playfs::content {

namespace {
bool never_changes(const std::string& collection) { return collection == "revisions" || collection == "file_chunks"; }

std::string key_of(const std::string& collection, const std::string& id) { return collection + "/" + id; }

std::string key_of(const std::string& collection, const std::string& id, Reduce reduce) {
  return std::to_string(reinterpret_cast<std::uintptr_t>(reduce)) + "/" + key_of(collection, id);
}
}  // namespace

void Records::get(const std::string& collection, const std::string& id, const CancelToken& cancel,
                  Callback<RecordTextPtr> done) {
  if (id.empty() || id.size() > kMaxIdLength)
    return done(fail(ErrorCode::not_found, "not a valid record id: " + escape_for_terminal(id)));
  if (never_changes(collection)) {
    if (auto stored = context_.records.record(context_.site, collection, id))
      return done(std::make_shared<const RecordText>(RecordText{collection, id, std::move(stored->text)}));
  }
  if (flights_.join(key_of(collection, id), cancel, std::move(done))) ask(collection, id);
}

void Records::ask(const std::string& collection, const std::string& id) {
  const std::string key = key_of(collection, id);
  auto arrived = [this, collection, id, key, question = context_.patience.ask(key)](Result<Record> answer,
                                                                                    SteadyTime asked_at) mutable {
    question.reset();
    if (was_overtaken(key, answer.has_value())) return ask(collection, id);
    std::optional<std::string> json;
    if (answer) {
      if (context_.has_newer(collection, *answer, asked_at))
        if (auto newer = context_.records.record(context_.site, collection, id)) json = std::move(newer->text);
      if (!json) json = context_.store(collection, *answer);
    } else {
      auto old = is_outage(answer.error().code) ? context_.records.record(context_.site, collection, id) : std::nullopt;
      if (answer.error().code == ErrorCode::not_found) context_.records.forget_record(context_.site, collection, id);
      if (old) json = std::move(old->text);
    }
    if (!json) return flights_.land(key, fail(std::move(answer).error()));
    flights_.land(key, std::make_shared<const RecordText>(RecordText{collection, id, std::move(*json)}));
  };
  turns_.take(collection, context_.guarded([this, collection, id, key,
                                            arrived = std::move(arrived)](Turns::Turn turn) mutable {
    const bool is_abandoned = flights_.abandon(key);
    {
      MutexLock lock(mutex_);
      if (is_abandoned) {
        asked_.erase(key);
        return;
      }
      Asked& asked = asked_[key];
      asked.period = context_.live.period();
      asked.at = context_.clock.steady();
      asked.is_outdated = false;
    }
    auto ended = [turn = std::move(turn), arrived = std::move(arrived),
                  asked_at = context_.clock.steady()](Result<Record> answer) mutable {
      turn.reset();
      arrived(std::move(answer), asked_at);
    };
    context_.client.get_record(collection, id, context_.gate->closing(), context_.answered<Record>(std::move(ended)));
  }));
}

bool Records::was_overtaken(const std::string& key, bool is_answer) {
  MutexLock lock(mutex_);
  auto found = asked_.find(key);
  if (found == asked_.end()) return false;
  Asked& asked = found->second;
  if (is_answer && asked.is_outdated && asked.times < kMostAsked) {
    ++asked.times;
    return true;
  }
  if (is_answer && !asked.is_outdated && asked.period != 0)
    static_cast<void>(told_.insert(key, {asked.period, asked.at}));
  asked_.erase(found);
  return false;
}

bool Records::is_told(const std::string& collection, const std::string& id) {
  MutexLock lock(mutex_);
  const Told* told = told_.find(key_of(collection, id));
  return told && context_.is_told(told->period, told->asked_at);
}

void Records::heard(const std::string& collection, const std::string& id) {
  const std::string key = key_of(collection, id);
  MutexLock lock(mutex_);
  static_cast<void>(told_.take(key));
  if (auto found = asked_.find(key); found != asked_.end()) found->second.is_outdated = true;
}

PartAtOnce Records::known_part(const std::string& collection, const std::string& id, Reduce reduce, Reads reads) {
  if (const auto known = kept(key_of(collection, id, reduce))) {
    if (never_changes(collection) && is_whole(*known->part)) return {known->part};
    if (known->is_large && reads != Reads::any) return {nullptr, true, true};
  }
  auto stored = context_.records.record(context_.site, collection, id);
  return stored ? part_of({collection, id, std::move(stored->text)}, reduce, reads) : PartAtOnce();
}

PartAtOnce Records::part_of(const RecordText& text, Reduce reduce, Reads reads) {
  const bool is_large = text.json.size() > kParsedAtOnce;
  if (is_large && reads != Reads::any) return {nullptr, true, true};
  const std::string key = key_of(text.collection, text.id, reduce);
  const ContentHash hash = ContentHash::of(text.json);
  if (auto known = kept(key); known && known->of == hash && is_whole(*known->part)) return {known->part};
  auto record = SiteContext::read(text.json, text.id);
  if (!record) return {};
  if (reads == Reads::at_once && memory_of(*record) > kReducedAtOnce) return {nullptr, true};
  Reduced reduced = reduce(std::move(*record));
  record.reset();
  Text shown = keep(std::move(reduced.text));
  auto part = std::make_shared<const RecordPart>(RecordPart{std::move(reduced.record), std::move(shown)});
  const std::size_t cost = memory_of(part->record) + (part->text.bytes() ? part->text.size() : 0);
  std::vector<Kept> evicted;  // destroyed after the lock is released
  MutexLock lock(mutex_);
  evicted = parts_.insert(key, {hash, is_large, part}, cost);
  return {part};
}

std::optional<Records::Kept> Records::kept(const std::string& key) {
  MutexLock lock(mutex_);
  const Kept* found = parts_.find(key);
  return found ? std::optional(*found) : std::nullopt;
}

bool Records::is_whole(const RecordPart& part) const {
  if (part.text.bytes()) return true;
  auto object = context_.objects.find(part.text.object());
  return object && *object;
}

Text Records::keep(std::string text) const {
  if (text.size() <= Text::kMostInMemory) return Text(std::move(text));
  auto object = context_.objects.put(text);
  return object ? Text((*object)->hash(), text.size()) : Text(std::move(text));
}

std::optional<std::string> Records::read(const Text& text, std::uint64_t offset, std::size_t size) {
  if (const std::string* bytes = text.bytes()) return offset < bytes->size() ? bytes->substr(offset, size) : "";
  auto object = context_.objects.find(text.object());
  if (!object || !*object) return std::nullopt;
  auto bytes = (*object)->read(offset, size);
  return bytes ? std::optional(std::move(*bytes)) : std::nullopt;
}

}  // namespace playfs::content
