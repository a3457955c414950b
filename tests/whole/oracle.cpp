#include "whole/oracle.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "model/chunking.h"
#include "support/manual_time.h"
#include "whole/client.h"
#include "whole/disk.h"
#include "wire/continuation.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::sim {

Log::Log(const std::vector<service::StoredRecord>& stored_revisions,
         const std::vector<service::StoredRecord>& stored_chunks,
         const std::vector<service::StoredRecord>& stored_messages) {
  for (const auto& chunk : stored_chunks)
    chunks_[chunk.id] = *wire::parse_json(chunk.fields)->object()->find("content")->string();
  std::map<std::string, std::string> first_of;  // with all of these fields equal
  for (const auto& stored : stored_revisions) {
    auto json = wire::parse_json(R"({"id":")" + stored.id + R"(","data":)" + stored.fields + "}");
    auto record = wire::decode_record(*json);
    auto revision = record ? wire::decode_revision(*record) : fail(record.error());
    if (!revision) continue;
    revision->created_at = stored.created_at;
    if (auto& more = revision->manifest.continuation)
      static_cast<void>(wire::read_continuation(revision->manifest, bytes(more->entry)));
    // By a foreign client that carried along what it had read.
    if (revision->message == "blind" || revision->message == "help") {
      revision->manifest.tx.clear();
      revision->manifest.is_automatic = false;
    }
    alike_[stored.id] = first_of.try_emplace(stored.fields, stored.id).first->second;
    order.push_back(stored.id);
    messages[stored.id] = revision->message;
    revisions.emplace(stored.id, *std::move(revision));
  }
  for (const auto& message : stored_messages) {
    auto json = wire::parse_json(message.fields);
    const Json* links = json->object()->find("links");
    for (const Json& link : *links->array()) announced_.insert(*link.string());
  }
}

std::string Log::bytes(const FileEntry& entry) const {
  std::string text = entry.inline_text.value_or("");
  for (const auto& id : entry.chunks)
    if (auto chunk = chunks_.find(id.text()); chunk != chunks_.end()) text += chunk->second;
  return decode_content(text, entry.encoding).value_or("");
}

std::optional<std::string> Log::bytes(const std::string& revision, const std::string& path) const {
  const auto& files = revisions.at(revision).manifest.files;
  auto entry = files.find(path);
  return entry == files.end() ? std::nullopt : std::optional(bytes(entry->second));
}

const std::set<std::string>& Log::content(const std::string& id) {
  auto [known, is_new] = contents_.try_emplace(id);
  if (!is_new) return known->second;
  auto revision = revisions.find(id);
  if (revision == revisions.end()) return known->second;
  std::set<std::string> held;
  const Manifest& manifest = revision->second.manifest;
  if (!manifest.is_automatic) held.insert(manifest.tx.empty() ? alike_.at(id) : manifest.tx);
  for (const auto& parent : revision->second.parents) held.merge(std::set<std::string>(content(parent.text())));
  return contents_[id] = std::move(held);
}

bool Log::covers(const std::string& a, const std::string& b) {
  const auto &more = content(a), &less = content(b);
  return std::includes(more.begin(), more.end(), less.begin(), less.end());
}

RevisionTreePtr Log::tree(const std::string& id) const {
  auto found = revisions.find(id);
  return found == revisions.end() ? nullptr : std::make_shared<RevisionTree>(found->second);
}

namespace {

void add(std::set<std::string>& all, std::string_view text) {
  for (auto& token : tokens_in(text)) all.insert(std::move(token));
}

void read_tree(stage::Stage& stage, const stage::InodePtr& directory, const Log& log, std::set<std::string>& found) {
  auto entries = stage.list(directory, 0, 1000);
  if (!entries) return;
  for (const auto& entry : *entries) {
    if (entry.name == "." || entry.name == "..") continue;
    auto attributes = stage.attributes(entry.inode);
    if (!attributes) continue;
    add(found, entry.name);
    if (attributes->kind == stage::Kind::directory) {
      read_tree(stage, entry.inode, log, found);
    } else if (auto below = stage.lower_content(entry.inode)) {
      add(found, log.bytes(*below->entry));
    } else if (attributes->kind == stage::Kind::symlink) {
      add(found, stage.symlink_target(entry.inode).value_or(""));
    } else {
      add(found, stage.read(entry.inode, 0, attributes->size).value_or(""));
    }
  }
}

}  // namespace

std::set<std::string> tokens_in_tree(stage::Stage& stage, const Log& log) {
  std::set<std::string> found;
  read_tree(stage, stage.root(), log, found);
  const RevisionTreePtr base = stage.base();
  add(found, stage.staged_state().value_or(wire::to_text(base ? base->revision.state : Json())));
  return found;
}

void check_writes(const Client& client, Log& log, Verdict& verdict) {
  std::set<std::string> found, aside;
  const std::string directory = client.directory() + "/stage";
  const test::ManualClock clock(WallTime{});  // the stage of a dead client: no time passes
  auto base = stage::Stage::recorded_base(directory);
  if (!base) return verdict.add(fmt::format("{}: its stage has no base: {}", client.agent(), base.error().message));
  if (*base) {
    stage::StageOptions options{.directory = directory};
    options.housekeeping.own_thread = false;
    options.boot = static_cast<std::uint64_t>(client.power_cuts);
    auto stage = stage::Stage::open(std::move(options), clock, log.tree((*base)->text()));
    if (!stage)
      return verdict.add(fmt::format("{}: its stage does not open: {}", client.agent(), stage.error().message));
    found.merge(tokens_in_tree(**stage, log));
    if (auto pending = (*stage)->pending(); pending && *pending) {
      add(found, (*pending)->state.value_or(""));
      for (const auto& file : (*pending)->files) {
        if (file.published) add(found, log.bytes(*file.published));
        else add(found, file.target.empty() ? (*stage)->read_frozen(file).value_or("") : file.target);
      }
    }
  }
  for (const std::string& lost : {directory + "/lost+found", client.directory() + "/lost+found"})
    for (const auto& content : Disks::all().contents_below(lost)) add(aside, content);
  std::set<std::string> published;
  std::map<std::string, const Revision*> lost;  // the newest that had it
  for (const auto& [id, revision] : log.revisions) {
    std::set<std::string> here;
    add(here, wire::to_text(revision.state));
    for (const auto& [path, entry] : revision.manifest.files) add(here, log.bytes(entry));
    if (!log.lost.contains(id)) {
      published.merge(here);
      continue;
    }
    for (const auto& token : here) {
      const Revision*& newest = lost[token];
      if (!newest || newest->created_at < revision.created_at) newest = &revision;
    }
  }
  if (!client.has_resolved()) {
    for (const auto& token : client.ledger.kept_here)
      if (published.contains(token) || lost.contains(token))
        verdict.add(fmt::format("{} wrote {} to what is ignored, and it was published", client.agent(), token));
  }
  // A tree that still had it may follow a head known from before it learns that the service went back.
  auto was_reverted = [&](const Revision& had) {
    return std::any_of(log.lost_heads.begin(), log.lost_heads.end(), [&](const std::string& id) {
      auto head = log.revisions.find(id);
      return head != log.revisions.end() && head->second.project == had.project &&
             head->second.created_at > had.created_at;
    });
  };
  // A client that had it published a revision without it, for example to resolve a conflict. The history lacks it only
  // because the service lost it.
  auto was_replaced = [&](const Revision& had) {
    return std::any_of(log.order.begin(), log.order.end(), [&](const std::string& id) {
      return !log.lost.contains(id) && log.revisions.at(id).project == had.project && log.covers(id, had.id.text());
    });
  };
  for (const auto& [token, write] : client.ledger.writes) {
    if (write.fate != Ledger::Fate::kept) continue;
    ++verdict.writes;
    if (found.contains(token) || published.contains(token)) continue;
    // A sync promises more than a copy in lost+found.
    if (aside.contains(token) && !write.is_safe) continue;
    auto had = lost.find(token);
    if (had != lost.end() && (!client.ledger.in_tree.contains(token) || was_reverted(*had->second))) {
      ++verdict.waivers["the service lost it, and it stood in no work tree any more"];
      continue;
    }
    if (had != lost.end() && was_replaced(*had->second)) {
      ++verdict.waivers["the service lost it, and what was made on it and is there does not have it"];
      continue;
    }
    verdict.add(fmt::format("{} wrote {} to {} at {} s, and it is nowhere", client.agent(), token, write.path,
                            std::chrono::duration_cast<std::chrono::milliseconds>(write.at).count() / 1000.0));
  }
}

void check_lines(const std::set<std::string>& removed, Log& log, Verdict& verdict) {
  auto all_of = [&](const std::string& id) {
    return log.bytes(id, "shared").value_or("") + wire::to_text(log.revisions.at(id).state);
  };
  for (const auto& id : log.order) {
    std::set<std::string> here;
    add(here, all_of(id));
    for (const auto& parent : log.revisions.at(id).parents) {
      if (!log.revisions.contains(parent.text())) continue;
      for (const auto& token : tokens_in(all_of(parent.text())))
        if (!here.contains(token) && !removed.contains(token))
          verdict.add(fmt::format("{} stands in {} and not in {}, and nobody wrote over it", token, parent.text(), id));
    }
  }
}

namespace {
/// It has this content wherever it exists, and exists wherever it did before.
void check_untouched(const std::string& path, const std::string& content, const Log& log, Verdict& verdict) {
  for (const auto& id : log.order) {
    auto here = log.bytes(id, path);
    const auto& parents = log.revisions.at(id).parents;
    auto was_there = [&] {
      return std::any_of(parents.begin(), parents.end(), [&](const RevisionId& parent) {
        return log.revisions.contains(parent.text()) && log.bytes(parent.text(), path);
      });
    };
    // It may be frozen between creation and write. If the write is lost, its token is nowhere.
    if (here && *here != content && (!here->empty() || was_there()))
      verdict.add(fmt::format("{} has other bytes in {}", path, id));
    if (!here && was_there()) verdict.add(fmt::format("{} is gone in {}, which was made of what had it", path, id));
  }
}
}  // namespace

void check_history(const std::vector<std::unique_ptr<Client>>& clients,
                   const std::map<std::string, std::string>& brought_by_neighbours, Log& log, Verdict& verdict) {
  for (const auto& [path, content] : brought_by_neighbours) check_untouched(path, content, log, verdict);
  for (const auto& client : clients)
    for (const auto& [path, content] : client->brought) check_untouched(path, content, log, verdict);
  std::vector<std::string> victims{kVictimOfNeighbours};
  for (const auto& client : clients) victims.push_back(fmt::format("victim-{}", client->plan().number));
  for (const auto& victim : victims) {
    for (const auto& id : log.order) {
      const auto& parents = log.revisions.at(id).parents;
      bool is_gone = std::any_of(parents.begin(), parents.end(), [&](const RevisionId& parent) {
        return log.revisions.contains(parent.text()) && !log.bytes(parent.text(), victim);
      });
      if (is_gone && log.bytes(id, victim)) verdict.add(fmt::format("{} was deleted and is back in {}", victim, id));
    }
  }
}

}  // namespace playfs::sim
