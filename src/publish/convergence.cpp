#include "publish/convergence.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "model/plan.h"
#include "publish/chunk_reuse.h"
#include "publish/request_bodies.h"
#include "wire/json.h"

namespace playfs::publish {

namespace {

/// Others may post or set head back over and over; after this many rounds the publication backs off before it
/// continues.
constexpr int kRoundsAtOnce = 16;
/// Plans per merge: one more for its continuation, and one for each time that chunks turn out to be gone.
constexpr int kMostPlans = 5;
constexpr std::chrono::hours kPolicyHour{1};
/// The service has no compare-and-swap for head. So nothing seen of head or the log is acted upon when it is older than
/// this: reading may take minutes if the log is long, or the machine or the network slow.
constexpr std::chrono::seconds kFreshLook{1};
/// Chunks of a merge whose bodies are in memory at the same time.
constexpr std::size_t kHeldAtOnce = 128;

bool is_of_playfs(const RevisionTreePtr& revision) {
  return revision && (!revision->tree.manifest().tx.empty() || revision->tree.manifest().is_automatic);
}

/// How often head is moved away from the same revision, at most. What strangers set is repaired once, since they may
/// mean it. What cooperating clients set may be an old request that arrives late, and each of them may have one.
std::size_t repairs_allowed(const RevisionTreePtr& head) { return is_of_playfs(head) ? 16 : 1; }

/// An idempotency key that is the same for every client that sends this body.
std::string key_of_body(const std::string& body) {
  std::string hex = ContentHash::of(body).hex();
  hex[12] = '8';  // a UUID of version 8, which is free for all uses
  hex[16] = 'a';
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4), hex.substr(16, 4),
                     hex.substr(20, 12));
}

RevisionTreePtr at(const std::map<RevisionId, RevisionTreePtr>& revisions, const RevisionId& id) {
  auto found = revisions.find(id);
  return found == revisions.end() ? nullptr : found->second;
}

/// Services answer 409, 423 or 425 to a key whose request is being carried out.
bool is_about_another_request(const Error& error) {
  return error.http_status == 409 || error.http_status == 423 || error.http_status == 425;
}

/// The chunks that one of the merged revisions has of files merged line by line, and of the continuation.
Status find_near(Upstream& upstream, const Merging::Joined& joined, Stored& stored) {
  PLAYFS_TRY(auto first, upstream.revision(joined.revisions.front()));
  const Manifest& manifest = first->tree.manifest();
  NearChunks near(upstream, stored);
  if (manifest.continuation) PLAYFS_CHECK(near.add(kContinuationPath, manifest.continuation->entry));
  for (const auto& [path, entry] : joined.snapshot.manifest.files) {
    auto was = manifest.files.find(path);
    bool is_large = entry.inline_text && entry.inline_text->size() > kMaxInlineText;
    if (is_large && was != manifest.files.end() && was->second.encoding == entry.encoding)
      PLAYFS_CHECK(near.add(path, was->second));
  }
  return {};
}

}  // namespace

// Reading the log.

Status Convergence::add(const RevisionTreePtr& revision, Log& log) {
  if (!revision || revision->revision.project != parts_.project) return {};
  log.revisions.insert_or_assign(revision->revision.id, revision);
  return {};
}

Result<RevisionTreePtr> Convergence::read(const RevisionId& id) {
  if (auto known = at(known_, id)) return known;
  auto revision = parts_.upstream.revision(id);
  if (!revision && is_transient(revision.error().code)) return fail(revision.error());
  if (!revision) return nullptr;
  parts_.merging.learn(link_of(**revision));
  return known_[id] = *std::move(revision);
}

Result<Convergence::Log> Convergence::read_log(const RevisionTreePtr& ours, const RevisionTreePtr& since) {
  PLAYFS_TRY(auto from, parts_.journal.watermark());
  if (!from && since) from = since->revision.created_at;
  Log log;
  log.began = parts_.clock.steady();
  PLAYFS_TRY(log.project, parts_.scan.look(from));
  // Only starts the waiting time that a later move of head needs.
  static_cast<void>(parts_.absences.check_head(log.project));
  for (const auto& [id, time] : parts_.scan.found()) {
    PLAYFS_TRY(auto revision, read(id));
    PLAYFS_CHECK(add(revision, log));
  }
  std::erase_if(known_, [&](const auto& item) { return !log.revisions.contains(item.first); });
  parts_.absences.saw([&](const RevisionId& id) { return parts_.scan.has_just_seen(id); });
  // What is in no list may be gone, even if it is remembered here: nothing may be built on it, least of all head.
  if (ours && !log.revisions.contains(ours->revision.id)) {
    PLAYFS_TRY(bool is_shown, is_there(ours->revision.id));
    log.ours_is_gone = !is_shown;
  }
  if (log.ours_is_gone) {
    // The caller waits before it publishes ours again. Look up whatever else may be missing now, so that one wait is
    // enough.
    for (const RevisionId& id : {log.project.latest_revision, id_of(since)})
      if (!id.empty() && !log.revisions.contains(id)) PLAYFS_CHECK(is_there(id));
    return log;
  }
  PLAYFS_CHECK(add(ours, log));
  if (ours) {
    PLAYFS_TRY(log.ours_is_hollow, is_hollow(*ours));
  }
  if (!log.ours_is_hollow) PLAYFS_CHECK(add_head(log));
  return log;
}

Result<bool> Convergence::is_there(const RevisionId& id) {
  PLAYFS_TRY(Absences::Presence presence, parts_.absences.look(id));
  return presence == Absences::Presence::there;
}

Result<bool> Convergence::is_hollow(const RevisionTree& revision) {
  if (whole_ == revision.revision.id) return false;
  ChunkIds needed = chunks_of(revision.tree.manifest());
  for (const auto& id : revision.revision.parents) {
    // What a parent refers to is older than the parent.
    bool is_parent_there = true;
    if (!parts_.scan.has_just_seen(id) && !needed.empty()) {
      PLAYFS_TRY(is_parent_there, is_there(id));
    }
    if (!is_parent_there) continue;  // its chunks are requested instead
    PLAYFS_TRY(auto parent, read(id));
    if (!parent) continue;
    for (const auto& chunk : chunks_of(parent->tree.manifest())) needed.erase(chunk);
  }
  PLAYFS_TRY(auto lost, parts_.stored.find_lost(revision.revision.id, needed));
  if (lost.empty()) whole_ = revision.revision.id;
  return !lost.empty();
}

Status Convergence::add_head(Log& log) {
  const RevisionId& head = log.project.latest_revision;
  if (head.empty() || log.revisions.contains(head)) return {};
  bool is_head_gone = false;  // if the list has it, it is not gone: just not readable here
  if (!parts_.scan.has_just_seen(head)) {
    PLAYFS_TRY(is_head_gone, parts_.absences.is_gone(head));
  }
  PLAYFS_TRY(auto revision, read(head));
  if (revision && !is_head_gone) return add(revision, log);
  // A head that was read here and is gone was lost by the service, and what it held is known. A head that was never
  // read here, is in no list and is nobody's parent was set by mistake and holds nothing. To stay on it would lose
  // more: nobody sees any file of a project whose head is nothing, and every commit would be one more branch beside it.
  // If it appears after all, it is in the log like any other revision, and is merged or announced.
  const bool is_named = std::any_of(log.revisions.begin(), log.revisions.end(), [&](const auto& item) {
    const auto& parents = item.second->revision.parents;
    return std::find(parents.begin(), parents.end(), head) != parents.end();
  });
  log.head_is_gone = is_head_gone && (revision || !is_named);
  if (log.head_is_gone) return {};
  // Any other head holds something, but what it holds is unknown here.
  PLAYFS_TRY(auto link, parts_.merging.links().find(head));
  log.unread_head = link.value_or(Link{head, {}, {}, head.text()});
  return {};
}

// Merging.

/// A merge of revisions that the service has lost since would refer to lost chunks too, but would seem to hold them.
Result<bool> Convergence::are_still_there(const std::vector<RevisionId>& listed, SteadyTime since) {
  if (parts_.clock.steady() - since <= kFreshLook) return true;
  for (const auto& id : listed) {
    PLAYFS_TRY(bool is_still_there, is_there(id));
    if (!is_still_there) return false;
  }
  return true;
}

Result<bool> Convergence::may_merge(const RevisionTreePtr& revision) const {
  switch (parts_.policy.whose) {
    case MergePolicy::Whose::all: return true;
    case MergePolicy::Whose::none: return false;
    case MergePolicy::Whose::listed: break;
  }
  const auto& agents = parts_.policy.agents;
  if (std::find(agents.begin(), agents.end(), revision->revision.agent) != agents.end()) return true;
  Link link = link_of(*revision);
  if (!link.is_merge) return false;
  return parts_.merging.links().confirm(link);
}

bool Convergence::may_merge_now() {
  auto now = parts_.clock.steady();
  while (!merges_.empty() && now - merges_.front() >= kPolicyHour) merges_.pop_front();
  return merges_.size() < parts_.policy.most_in_an_hour;
}

Status Convergence::upload(const Plan& plan, std::vector<ChunkId>& ids, const std::function<Status()>& before_write) {
  ids.resize(plan.uploads.size());
  for (std::size_t at = 0; at < ids.size(); at += kHeldAtOnce) {
    std::vector<publish::Upload> uploads;
    for (std::size_t i = at; i < std::min(at + kHeldAtOnce, ids.size()); ++i) {
      PLAYFS_CHECK(before_write());
      PLAYFS_TRY(ChunkDraft chunk, draft_of(plan, plan.uploads[i]));
      std::string body = wire::to_text(wire::encode_chunk_draft(chunk));
      auto number = static_cast<std::int64_t>(i);
      uploads.push_back({number, key_of_body(body), std::move(body), chunk.hash, chunk.content.size(), {}});
    }
    PLAYFS_CHECK(parts_.upstream.upload(uploads, [&](const std::vector<publish::Upload>& stored) {
      for (const auto& one : stored) {
        ids[static_cast<std::size_t>(one.number)] = one.chunk;
        parts_.stored.saw(one.chunk);
      }
      return parts_.journal.record_known(stored);
    }));
  }
  return {};
}

Result<bool> Convergence::has_all_chunks(const Plan& plan, const std::vector<ChunkId>& ids,
                                         const Merging::Joined& joined) {
  PLAYFS_TRY(Manifest manifest, with_continuation(fill(plan, ids).manifest, plan.continuation));
  ChunkIds needed = chunks_of(manifest);
  for (const auto& id : joined.revisions) {
    PLAYFS_TRY(auto revision, parts_.upstream.revision(id));
    for (const auto& chunk : chunks_of(revision->tree.manifest())) needed.erase(chunk);
  }
  PLAYFS_TRY(auto gone, parts_.stored.find_missing(needed));
  if (gone.empty()) return true;
  std::vector<LostChunk> lost;
  for (const auto& chunk : gone) lost.push_back({chunk, {}});
  PLAYFS_CHECK(parts_.journal.record_lost_chunks(nullptr, lost));
  return false;
}

Result<std::optional<RevisionTreePtr>> Convergence::post_merge(const Merging::Joined& joined,
                                                               const RevisionId& on_heads_line,
                                                               const std::function<Status()>& before_write) {
  PlanInput input;
  RevisionDraft& draft = input.draft;
  draft.project = parts_.project;
  draft.parents = joined.revisions;
  // Following first parents from head must stay on the line that head was on.
  auto first = std::find(draft.parents.begin(), draft.parents.end(), on_heads_line);
  if (first != draft.parents.end()) std::rotate(draft.parents.begin(), first, first + 1);
  draft.agent = "playfs";
  draft.message = "Merge";
  for (std::size_t i = 0; i < joined.revisions.size(); ++i)
    draft.message += (i == 0 ? " " : i + 1 == joined.revisions.size() ? " and " : ", ") + joined.revisions[i].text();
  draft.state = joined.snapshot.state;
  draft.manifest.refused = joined.snapshot.manifest.refused;
  draft.manifest.extra = joined.snapshot.manifest.extra;
  draft.manifest.extra.erase("auto");
  draft.manifest.is_automatic = true;
  draft.manifest.files = joined.snapshot.manifest.files;
  input.base = joined.revisions.front();
  PLAYFS_CHECK(find_near(parts_.upstream, joined, input.stored));
  Plan plan;
  std::vector<ChunkId> ids;
  bool is_whole = false;
  for (int times = 0; !is_whole; ++times) {  // a second time if a continuation names the chunks of the first
    if (times == kMostPlans) return fail(ErrorCode::busy, "the service loses chunks faster than they are uploaded");
    PLAYFS_TRY(auto known, KnownFromHere::open(parts_.journal));
    input.stored.pieces = &known;
    auto planned = make_plan(input, WireSizes());
    if (!planned && planned.error().code == ErrorCode::file_too_big) return std::optional<RevisionTreePtr>();
    if (!planned) return fail(planned.error());
    plan = *std::move(planned);
    PLAYFS_CHECK(upload(plan, ids, before_write));
    if (plan.uploads_to_follow > 0) continue;
    PLAYFS_TRY(is_whole, has_all_chunks(plan, ids, joined));
  }
  Json body = wire::encode_revision_draft(fill(plan, ids));
  std::string text = wire::to_text(body);
  if (text.size() > kMaxRecordSize) return std::optional<RevisionTreePtr>();
  PLAYFS_CHECK(before_write());
  auto created = parts_.upstream.create("revisions", body, key_of_body(text));
  // Others may be posting the same merge under the same key.
  if (!created && is_about_another_request(created.error()))
    return fail(ErrorCode::busy, created.error().message + "; reading the log again");
  PLAYFS_TRY(Record record, std::move(created));
  if (!record.fields.find("manifest")) {  // the response has only the system fields
    PLAYFS_TRY(record, parts_.upstream.get("revisions", record.id));
  }
  auto revision = wire::decode_revision(record);
  if (!revision || !is_revision_of_body(*revision, text))
    return fail(ErrorCode::protocol, "the service returned a different revision than the merge that was posted: " +
                                         escape_for_terminal(record.id));
  parts_.upstream.learn("revisions", record);
  PLAYFS_TRY(auto tree, parts_.upstream.revision(RevisionId(record.id)));
  merges_.push_back(parts_.clock.steady());
  return std::optional(std::move(tree));
}

// The rounds.

bool Convergence::may_yet_be_seen(SteadyTime written) const {
  return parts_.clock.steady() - written < parts_.late_arrival;
}

Result<ConvergedState> Convergence::run(const RevisionTreePtr& ours, bool may_join, const RevisionTreePtr& since,
                                        const std::function<Status()>& before_write) {
  ConvergedState converged;
  auto write = [&]() -> Status {
    ++converged.writes;
    return before_write();
  };
  for (int round = 0; round < kRoundsAtOnce; ++round) {
    PLAYFS_TRY(Log log, read_log(ours, since));
    if (moved_ && log.project.latest_revision != moved_->from) moved_.reset();
    converged.ours_is_gone = log.ours_is_gone;
    converged.ours_is_hollow = log.ours_is_hollow;
    if (log.ours_is_gone || log.ours_is_hollow) return converged;
    if (posted_ && log.revisions.contains(posted_->merge->revision.id)) {
      posted_.reset();
    } else if (posted_) {
      PLAYFS_TRY(bool is_merge_there, is_there(posted_->merge->revision.id));
      if (!is_merge_there && may_yet_be_seen(posted_->time))
        return fail(ErrorCode::busy, "the service does not show the merge yet");
      if (is_merge_there) PLAYFS_CHECK(add(posted_->merge, log));
      else posted_.reset();
    }
    if (log.revisions.empty() && !log.unread_head) return converged;  // nothing was ever published
    std::vector<Link> links;
    for (const auto& [id, revision] : log.revisions) {
      PLAYFS_TRY(auto link, parts_.merging.links().find(id));
      if (link) links.push_back(*std::move(link));
    }
    if (log.unread_head) links.push_back(*log.unread_head);
    PLAYFS_TRY(auto tips, find_tips(links, parts_.merging.links()));

    // The tip that holds all of head comes first, so that head never loses anything because of us. If no tip is seen to
    // hold it, head stays.
    const RevisionId& head = log.project.latest_revision;
    std::vector<RevisionId> compared = tips;
    bool head_is_known = log.revisions.contains(head) || log.unread_head;
    for (const RevisionId& id : {head_is_known ? head : RevisionId(), id_of(ours)})
      if (!id.empty() && std::find(compared.begin(), compared.end(), id) == compared.end()) compared.push_back(id);
    PLAYFS_TRY(Holdings holdings, Holdings::compare(compared, parts_.merging.links()));
    if (head_is_known) {
      auto above = std::find_if(tips.begin(), tips.end(), [&](const auto& tip) { return holdings.covers(tip, head); });
      if (above == tips.end()) above = tips.insert(above, head);
      std::rotate(tips.begin(), above, above + 1);
    }

    auto is_joinable = [&](const RevisionId& id) -> Result<bool> {
      if (!log.revisions.contains(id)) return false;  // it cannot be read here
      if (ours && id == ours->revision.id) return may_join;
      return may_merge(log.revisions[id]);
    };
    std::vector<RevisionId> to_join = {tips.front()};
    std::map<RevisionId, std::vector<Conflict>> left_out;
    PLAYFS_TRY(const bool is_first_joinable, is_joinable(tips.front()));
    for (std::size_t i = 1; i < tips.size(); ++i) {
      bool joins = before_write && is_first_joinable && to_join.size() < parts_.policy.most_at_once && may_merge_now();
      if (joins) {
        PLAYFS_TRY(joins, is_joinable(tips[i]));
      }
      if (joins) to_join.push_back(tips[i]);
      else left_out[tips[i]] = {};
    }
    // Head may be one of the tips beside the first by now, which an older record does not show. Merging the first tip
    // with another is a choice too: tips that do not merge with the result would be on the wrong side of it.
    auto check_choice = [&]() -> Status {
      const bool is_choice =
          head != tips.front() && std::any_of(left_out.begin(), left_out.end(), [&](const auto& item) {
            return head.empty() || (head_is_known && holdings.covers(item.first, head));
          });
      return is_choice ? parts_.absences.check_choice(log.project) : Status();
    };
    if (to_join.size() > 1) {
      PLAYFS_TRY(auto joined, parts_.merging.join(to_join, left_out));
      if (joined.revisions.size() > 1) {
        // Its files must not depend on where head was, so merge again in the log's order.
        std::vector<RevisionId> in_order = joined.revisions;
        std::sort(in_order.begin(), in_order.end(), [&](const RevisionId& a, const RevisionId& b) {
          return std::pair(log.revisions[a]->revision.created_at, a) <
                 std::pair(log.revisions[b]->revision.created_at, b);
        });
        std::map<RevisionId, std::vector<Conflict>> conflicted;
        if (in_order != joined.revisions) {
          PLAYFS_TRY(joined, parts_.merging.join(in_order, conflicted));
        }
        if (conflicted.empty()) {
          PLAYFS_TRY(bool are_there, are_still_there(joined.revisions, log.began));
          if (!are_there) continue;
          PLAYFS_CHECK(check_choice());
          PLAYFS_TRY(auto merge, post_merge(joined, tips.front(), write));
          if (merge) {
            posted_ = Posted{*std::move(merge), parts_.clock.steady()};
            parts_.events.event("merged",
                                {{"project", parts_.project.text()}, {"revision", posted_->merge->revision.id.text()}});
            continue;
          }
        }
        for (const auto& id : in_order)
          if (id != tips.front()) left_out.try_emplace(id);
      }
    }

    const RevisionId& tip = tips.front();
    converged.head = tip;
    const RevisionTreePtr at_tip = at(log.revisions, tip);
    converged.head_is_unread = log.unread_head && head == tip;
    converged.head_is_automatic = at_tip && at_tip->tree.manifest().is_automatic;
    converged.holds_ours = ours && holdings.covers(tip, ours->revision.id);
    converged.left_out.clear();
    for (auto& [id, conflicts] : left_out) {
      const RevisionTreePtr& revision = log.revisions[id];
      bool holds_ours = std::any_of(links.begin(), links.end(), [&, &id = id](const Link& link) {
        return is_of_playfs(at(log.revisions, link.id)) && holdings.holds(id, link.content) &&
               !holdings.holds(tip, link.content);
      });
      converged.left_out.push_back(
          {id, revision->revision.created_at, revision->revision.agent, holds_ours, std::move(conflicts)});
    }
    if (head == tip) {
      if (at_tip) converged.verified = at_tip->revision.created_at;
      posted_.reset();
      return converged;
    }
    if (!before_write) return converged;
    if (moved_ && moved_->from == head && may_yet_be_seen(moved_->time))
      return fail(ErrorCode::busy, "the service does not show the new head yet");
    if (moves_[head] > repairs_allowed(at(log.revisions, head))) {
      converged.given_up = true;
      converged.head = head;
      converged.holds_ours = ours && head_is_known && holdings.covers(head, ours->revision.id);
      converged.left_out.push_back({tip, at_tip->revision.created_at, at_tip->revision.agent, true, {}});
      return converged;
    }
    if (!converged.left_out.empty() || parts_.clock.steady() - log.began > kFreshLook) {
      // Head was read before the rest. Another client may have moved it since, so read it again.
      PLAYFS_TRY(Project now, parts_.upstream.project());
      if (now.latest_revision != head) continue;
    }
    PLAYFS_CHECK(parts_.absences.check_head(log.project));
    PLAYFS_CHECK(check_choice());
    PLAYFS_CHECK(write());
    Status moved = parts_.upstream.move_head(tip);
    if (moved) {
      ++moves_[head];
      moved_ = Move{head, parts_.clock.steady()};
      if (log.head_is_gone)
        parts_.events.event("head_was_gone",
                            {{"project", parts_.project.text()}, {"revision", head.text()}, {"moved_to", tip.text()}});
      continue;
    }
    // A lost response says nothing. Read again, since repeating blindly could undo another client's move.
    auto code = moved.error().code;
    if (code == ErrorCode::unreachable || code == ErrorCode::timed_out || code == ErrorCode::protocol) continue;
    return fail(moved.error());
  }
  return fail(ErrorCode::busy, "head keeps moving away from where it was set");
}

}  // namespace playfs::publish
