#include "publish/forgotten.h"

#include <algorithm>

#include "publish/publication_engine.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {

namespace {

const FileEntry* entry_at(const RevisionTreePtr& revision, const std::string& path) {
  return revision ? revision->tree.manifest().file_at(path) : nullptr;
}

const Json& state_of(const RevisionTreePtr& revision) {
  static const Json none;
  return revision ? revision->revision.state : none;
}

FileEntry entry_of(const stage::FrozenFile& file) {
  FileEntry entry = file.published.value_or(FileEntry());
  if (!file.published) {
    entry.hash_claim = file.hash.hex();
    entry.chunks = {ChunkId("(frozen) " + file.path)};  // equal to no other chunk, so that the hash decides
  }
  entry.mode = file.mode;
  return entry;
}

Error never_stored() {
  return {ErrorCode::corrupt, "the journal of a started commit was lost, and the service does not have its revision",
          "its changes are staged again: review them, then commit or discard"};
}

Error has_ended_already() {
  return {ErrorCode::corrupt, "the publication journal is outdated: this commit has already ended",
          "nothing is sent again; playfs status shows what is staged"};
}

/// Publications run one at a time, in the order of their numbers. So rows before the one that was sent must have ended,
/// and that one must have a key, which it gets with its body and keeps whatever happens afterwards.
bool is_behind(const Publication& row, const Sent& sent) {
  if (row.tx == sent.tx) return row.step < Step::posting && row.key.empty();
  return row.number <= sent.number && row.step < Step::settling;
}

std::uint32_t changes_in(const stage::Frozen& layer) {
  return static_cast<std::uint32_t>(layer.files.size() + layer.deletions.size());
}

}  // namespace

Result<bool> is_revision_of_layer(Upstream& upstream, const RevisionTreePtr& stored, const stage::Frozen& layer,
                                  const RevisionTreePtr& base) {
  if (stored->tree.manifest().tx != layer.tx) return false;
  const auto& parents = stored->revision.parents;
  auto is_parent = [&](const RevisionId& id) { return std::find(parents.begin(), parents.end(), id) != parents.end(); };
  if (!std::all_of(layer.merge_parents.begin(), layer.merge_parents.end(), is_parent)) return false;
  RevisionTreePtr on = base;  // what it is based on: the base, or a head that the layer was merged with
  for (const auto& id : parents) {
    auto parent = upstream.revision(id);
    if (!parent && is_transient(parent.error().code)) return fail(parent.error());
    if (!parent) continue;
    if ((*parent)->tree.manifest().tx == layer.tx) return false;  // that one may be ours, and this made from it
    const bool is_taken_in =
        std::find(layer.merge_parents.begin(), layer.merge_parents.end(), id) != layer.merge_parents.end();
    if (!is_parent(layer.base) && !is_taken_in) on = *parent;
  }
  // A merge can only have changed what was frozen where the other side had changed it too.
  auto holds = [&](const std::string& path, const FileEntry* frozen) {
    return same_content_and_mode(entry_at(stored, path), frozen) ||
           !same_content_and_mode(entry_at(on, path), entry_at(base, path));
  };
  for (const auto& file : layer.files) {
    const FileEntry frozen = entry_of(file);
    if (!holds(file.path, &frozen)) return false;
  }
  for (const auto& path : layer.deletions)
    if (!holds(path, nullptr)) return false;
  if (!layer.state) return true;
  PLAYFS_TRY(Json state, wire::parse_json(*layer.state));
  return state_of(stored) == state || state_of(on) != state_of(base);
}

Status PublicationEngine::recover() {
  PLAYFS_CHECK(catch_up());
  PLAYFS_TRY(auto pending, parts_.layers.pending());
  if (!pending) return {};
  PLAYFS_TRY(auto waiting, parts_.journal.waiting());
  if (std::any_of(waiting.begin(), waiting.end(), [&](const auto& each) { return each.tx == pending->tx; })) return {};
  PLAYFS_TRY(auto last, parts_.journal.last());
  if (last && last->tx == pending->tx) return parts_.journal.record_ending_again(*last);
  PLAYFS_CHECK(parts_.journal.record_forgotten(pending->tx, pending->base, changes_in(*pending)));
  say_forgotten(pending->tx);
  return {};
}

Status PublicationEngine::catch_up() {
  PLAYFS_TRY(auto sent, parts_.journal.sent());
  if (!sent) return {};
  PLAYFS_TRY(auto pending, parts_.layers.pending());
  PLAYFS_TRY(auto waiting, parts_.journal.waiting());
  for (Publication& row : waiting) {
    if (!is_behind(row, *sent)) continue;
    if (pending && pending->tx == row.tx) {
      PLAYFS_CHECK(parts_.journal.record_forgotten_again(row, pending->base, changes_in(*pending)));
      say_forgotten(row.tx);
    } else {
      PLAYFS_CHECK(parts_.journal.record_thawing(row, has_ended_already()));
    }
  }
  PLAYFS_TRY(auto last, parts_.journal.last());
  if (last) waiting.push_back(*std::move(last));
  // A new database counts from one again; its rows must not be compared with the numbers of the previous one.
  const bool is_of_this = std::any_of(waiting.begin(), waiting.end(), [&](const Publication& row) {
    return row.tx == sent->tx && row.number == sent->number;
  });
  return is_of_this ? Status() : parts_.journal.forget_sent();
}

void PublicationEngine::say_forgotten(const std::string& tx) {
  parts_.events.event("commit_forgotten", {{"project", parts_.project.text()}, {"tx", tx}});
  parts_.events.error(
      "projects/" + parts_.project.text(),
      Error{ErrorCode::corrupt,
            "a commit was started, but its journal is gone: looking for its revision at the service",
            "wait: if its revision is there, the commit is published; otherwise its changes are staged again"});
}

bool PublicationEngine::is_forgotten(const Publication& publication) {
  return publication.step == Step::posting && publication.body.empty();
}

/// Sends nothing: nobody requested it anew, and the first attempt may have been stored.
Status PublicationEngine::look_for_forgotten(Publication& publication) {
  if (!work_.in_doubt_since) work_.in_doubt_since = parts_.clock.steady();
  return refused(publication, never_stored());
}

Result<bool> PublicationEngine::is_revision_of(const Record& record, const Publication& publication) {
  auto revision = wire::decode_revision(record);
  if (!revision) return false;
  if (!is_forgotten(publication)) return is_revision_of_body(*revision, publication.body);
  PLAYFS_TRY(auto layer, parts_.layers.pending());
  if (!layer || layer->tx != publication.tx) return false;
  PLAYFS_TRY(auto stored, parts_.upstream.revision(revision->id));
  return is_revision_of_layer(parts_.upstream, stored, *layer, parts_.layers.base());
}

}  // namespace playfs::publish
