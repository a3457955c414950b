#include "content/revisions.h"

#include "base/text.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::content {

namespace {
constexpr const char* kCollection = "revisions";
}

RevisionTreePtr Revisions::known(const RevisionId& id) {
  {
    MutexLock lock(mutex_);
    if (auto* recent = recent_.find(id)) return *recent;
    if (auto held = alive_.find(id); held != alive_.end())
      if (auto tree = held->second.lock()) return tree;
  }
  auto record = context_.stored(kCollection, id.text());
  if (!record) return nullptr;
  const std::size_t cost = json_size(wire::encode_record(*record));
  auto revision = wire::decode_revision(std::move(*record));
  return revision ? adopt(std::make_shared<RevisionTree>(std::move(*revision)), cost) : nullptr;
}

RevisionTreePtr Revisions::adopt(RevisionTreePtr tree, std::size_t cost) {
  std::vector<RevisionTreePtr> evicted;  // destroyed after the lock is released
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

void Revisions::get(const RevisionId& id, const CancelToken& cancel, Callback<RevisionTreePtr> done) {
  if (auto tree = known(id)) return done(std::move(tree));
  if (id.empty() || id.text().size() > kMaxIdLength)
    return done(fail(ErrorCode::not_found, "no revision can have the id " + escape_for_terminal(id.text())));
  if (!flights_.join(id, cancel, std::move(done))) return;
  // An earlier flight may have landed since we looked.
  if (auto tree = known(id)) return flights_.land(id, tree);
  context_.client.get_record(
      kCollection, id.text(), context_.stop.token(),
      context_.answered<Record>([this, id](Result<Record> answer) { arrived(id, std::move(answer)); }));
}

void Revisions::arrived(const RevisionId& id, Result<Record> answer) {
  auto tree = decode(id, std::move(answer));
  if (!tree) {
    const ErrorCode code = tree.error().code;
    if (code == ErrorCode::refused_input || code == ErrorCode::protocol)
      context_.events.error("revisions/" + id.text(), tree.error());
  }
  flights_.land(id, tree);
}

Result<RevisionTreePtr> Revisions::decode(const RevisionId& id, Result<Record> answer) {
  PLAYFS_TRY(Record record, std::move(answer));
  const std::size_t cost = json_size(wire::encode_record(record));
  auto revision = wire::decode_revision(record);
  if (!revision) return fail(revision.error().while_doing("revision " + escape_for_terminal(id.text())));
  context_.store(kCollection, record);
  return adopt(std::make_shared<RevisionTree>(std::move(*revision)), cost);
}

}  // namespace playfs::content
