#include "content/revisions.h"

#include "base/text.h"
#include "model/memory.h"
#include "wire/continuation.h"
#include "wire/records.h"

namespace playfs::content {

namespace {

constexpr const char* kRevisions = "revisions";
/// Notes on disk that the service lacks one, without a text.
constexpr const char* kAbsent = "absent revisions";

/// The continuation file of a revision that lists only its record's files.
FileRef continuation_of(Revision revision) {
  auto tree = std::make_shared<const RevisionTree>(std::move(revision));
  return {tree, kContinuationPath, &tree->tree.manifest().continuation->entry};
}

RevisionTreePtr with_continuation(const RevisionTree& unread, std::string_view text) {
  Revision revision = unread.revision;
  revision.manifest = unread.tree.manifest();
  if (!wire::read_continuation(revision.manifest, text)) show_continuation(revision.manifest);
  return std::make_shared<const RevisionTree>(std::move(revision));
}

}  // namespace

RevisionTreePtr Revisions::in_memory(const RevisionId& id) {
  MutexLock lock(mutex_);
  if (auto* recent = recent_.find(id)) return *recent;
  auto held = alive_.find(id);
  return held == alive_.end() ? nullptr : held->second.lock();
}

RevisionTreePtr Revisions::known(const RevisionId& id) { return read(id, SIZE_MAX).tree; }

RevisionAtOnce Revisions::known_at_once(const RevisionId& id) { return read(id, kParsedAtOnce); }

RevisionAtOnce Revisions::read(const RevisionId& id, std::size_t most) {
  RevisionAtOnce nothing, too_large{nullptr, true};
  if (auto tree = in_memory(id)) return {std::move(tree)};
  auto stored = context_.records.record(context_.site, kRevisions, id.text());
  if (!stored) return nothing;
  if (stored->text.size() > most) return too_large;
  auto record = SiteContext::read(stored->text, id.text());
  auto revision = record ? wire::decode_revision(std::move(*record)) : fail(ErrorCode::not_found, "it is not here");
  if (!revision) return nothing;
  if (!revision->manifest.continuation) return {adopt(std::make_shared<RevisionTree>(std::move(*revision)))};
  FileRef more = continuation_of(std::move(*revision));
  auto blob = blobs_.known(more);
  if (blob && blob->size() > most) return too_large;
  auto text = blob ? blob->read(0, blob->size()) : fail(ErrorCode::not_found, "it is not here");
  return text ? RevisionAtOnce{adopt(with_continuation(*more.revision, *text))} : nothing;
}

RevisionTreePtr Revisions::adopt(RevisionTreePtr tree) {
  std::vector<RevisionTreePtr> evicted;  // destroyed after the lock is released
  const std::size_t cost = memory_of(*tree);
  MutexLock lock(mutex_);
  auto& held = alive_[tree->revision.id];
  if (auto other = held.lock()) return other;
  held = tree;
  evicted = recent_.insert(tree->revision.id, tree, cost);
  if (alive_.size() > prune_at_) {
    std::erase_if(alive_, [](const auto& entry) { return entry.second.expired(); });
    prune_at_ = 2 * alive_.size() + 256;
  }
  return tree;
}

void Revisions::get(const RevisionId& id, const ProjectId& of, const CancelToken& cancel,
                    Callback<RevisionTreePtr> done) {
  auto here = known_at_once(id);
  if (here.tree) return done(std::move(here.tree));
  if (id.empty() || id.text().size() > kMaxIdLength)
    return done(fail(ErrorCode::not_found, "not a valid revision id: " + escape_for_terminal(id.text())));
  if (!flights_.join(id, cancel, std::move(done))) return;
  if (!here.takes_long) return look(id, of);
  context_.large.post(context_.guarded([this, id, of] {
    if (!flights_.abandon(id)) look(id, of);
  }));
}

void Revisions::look(const RevisionId& id, const ProjectId& of) {
  // An earlier flight may have landed since the caller looked.
  if (auto tree = known(id)) return flights_.land(id, tree);
  if (auto record = context_.stored(kRevisions, id.text()))
    if (auto revision = wire::decode_revision(*std::move(record))) return complete(id, *std::move(revision));
  // A revision of an unknown project gets its own account.
  turns_.take(of.empty() ? id.text() : of.text(), context_.guarded([this, id, of](Turns::Turn turn) {
    if (flights_.abandon(id)) return;
    context_.client.get_record(kRevisions, id.text(), context_.gate->closing(),
                               context_.answered<Record>([this, id, asked_at = context_.clock.steady(),
                                                          turn = std::move(turn)](Result<Record> answer) mutable {
                                 turn.reset();
                                 arrived(id, asked_at, std::move(answer));
                               }),
                               of.text());
  }));
}

bool Revisions::was_absent(const RevisionId& id) {
  MutexLock lock(mutex_);
  const SteadyTime* said = absent_.find(id);
  return said && *said > news_at_ && context_.clock.steady() - *said < context_.options.refresh;
}

bool Revisions::was_absent_lately(const RevisionId& id) {
  const auto lately = std::max(kLately, context_.options.refresh);
  WallTime news;
  {
    MutexLock lock(mutex_);
    const SteadyTime* said = absent_.find(id);
    if (said) return *said > news_at_ && context_.clock.steady() - *said < lately;
    news = news_wall_;
  }
  const auto noted = context_.records.record(context_.site, kAbsent, id.text());
  if (!noted || noted->fetched_at <= news) return false;
  const std::chrono::nanoseconds age(context_.clock.wall().nanoseconds - noted->fetched_at.nanoseconds);
  return age >= age.zero() && age < lately;
}

void Revisions::forget_absent() {
  MutexLock lock(mutex_);
  news_at_ = context_.clock.steady();
  news_wall_ = context_.clock.wall();
}

void Revisions::arrived(const RevisionId& id, SteadyTime asked_at, Result<Record> answer) {
  const bool is_absent = !answer && answer.error().code == ErrorCode::not_found;
  {
    MutexLock lock(mutex_);
    static_cast<void>(absent_.take(id));
    if (is_absent) static_cast<void>(absent_.insert(id, asked_at));
  }
  if (is_absent) context_.records.store_record(context_.site, kAbsent, id.text(), {{}, {}, context_.clock.wall()});
  if (!answer) return flights_.land(id, fail(std::move(answer).error()));
  auto revision = wire::decode_revision(*answer);
  if (!revision) {
    const Error error = revision.error().while_doing("revision " + escape_for_terminal(id.text()));
    context_.events.error("revisions/" + id.text(), error);
    return flights_.land(id, fail(error));
  }
  context_.store(kRevisions, *answer);
  complete(id, std::move(*revision));
}

void Revisions::complete(const RevisionId& id, Revision revision) {
  if (!revision.manifest.continuation)
    return flights_.land(id, adopt(std::make_shared<RevisionTree>(std::move(revision))));
  FileRef more = continuation_of(std::move(revision));
  blobs_.get(more, Urgency::demand, context_.gate->closing(), context_.guarded([this, id, more](Result<Blob> blob) {
    auto text = blob ? blob->read(0, blob->size()) : Result<std::string>(fail(std::move(blob).error()));
    if (!text) return flights_.land(id, fail(text.error().while_doing("read the rest of the manifest")));
    flights_.land(id, adopt(with_continuation(*more.revision, *text)));
  }));
}

}  // namespace playfs::content
