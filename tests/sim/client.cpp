#include "sim/client.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "model/chunking.h"
#include "publish/rest.h"
#include "wire/continuation.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::sim {

namespace {

using publish::Publication;
using publish::Step;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// One that is killed over and over gets nowhere, and shows nothing more.
constexpr int kMostCrashes = 8;

Merge without_deletions(Merge merge, const Version& base, const Version& ours, const Version& theirs) {
  for (const Manifest* side : {&ours.manifest, &theirs.manifest})
    for (const auto& [path, entry] : side->files)
      if (base.manifest.files.contains(path) && !merge.files.contains(path)) merge.files[path] = {entry, std::nullopt};
  return merge;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::none: return "none";
    case Fault::patch_without_reread: return "patch-without-reread";
    case Fault::no_verify: return "no-verify";
    case Fault::key_after_sending: return "key-after-sending";
    case Fault::synced_late: return "synced-late";
    case Fault::merge_keeps_deleted: return "merge-keeps-deleted";
    case Fault::scan_cut_short: return "scan-cut-short";
  }
  return "";
}

// The journal.

Status MemoryJournal::write(const publish::JournalChange& change) {
  disk_.synced_before = disk_.journal;
  JournalState& state = disk_.journal;
  std::int64_t number = 0;
  if (const Publication* row = change.publication) {
    if (change.is_new) {
      state.rows.push_back(*row);
      state.rows.back().number = static_cast<std::int64_t>(state.rows.size());
      number = state.rows.back().number;
    } else {
      number = row->number;
      state.rows.at(static_cast<std::size_t>(number) - 1) = *row;
    }
  }
  state.uploads.insert(state.uploads.end(), change.added.begin(), change.added.end());
  for (const auto& upload : change.acknowledged) {
    for (auto& kept : state.uploads)
      if (kept.number == upload.number) kept.chunk = upload.chunk;
  }
  for (const auto* stored : {&change.acknowledged, &change.known}) {
    for (const auto& upload : *stored) {
      state.known[upload.text_hash] = {upload.chunk, upload.text_size};
      state.texts[upload.chunk] = {upload.text_hash, upload.text_size};
    }
  }
  if (change.rekeyed)
    for (auto& kept : state.uploads)
      if (kept.number == change.rekeyed->number) {
        kept.key = change.rekeyed->key;
        kept.recipe = change.rekeyed->recipe;
      }
  for (const auto& lost : change.lost) {
    std::erase_if(state.known, [&](const auto& item) { return item.second.id == lost.chunk; });
    for (auto& kept : state.uploads)
      if (kept.chunk == lost.chunk) kept.chunk = {}, kept.key = lost.fresh_key;
  }
  for (const auto& [name, value] : change.facts) state.facts[name] = value;
  if (change.is_last) state.uploads.clear();
  return {};
}

Result<std::optional<Publication>> MemoryJournal::front() {
  for (const auto& row : disk_.journal.rows)
    if (row.step != Step::ended) return std::optional(row);
  return std::optional<Publication>();
}

Result<std::vector<Publication>> MemoryJournal::waiting() {
  std::vector<Publication> waiting;
  for (const auto& row : disk_.journal.rows)
    if (row.step != Step::ended) waiting.push_back(row);
  return waiting;
}

Result<std::optional<Publication>> MemoryJournal::last() {
  for (auto row = disk_.journal.rows.rbegin(); row != disk_.journal.rows.rend(); ++row)
    if (row->step == Step::ended) return std::optional(*row);
  return std::optional<Publication>();
}

Result<std::vector<publish::Upload>> MemoryJournal::unsent(const Publication&, std::int64_t from, std::size_t most) {
  std::vector<publish::Upload> unsent;
  for (const auto& upload : disk_.journal.uploads)
    if (upload.chunk.empty() && upload.number >= from && unsent.size() < most) unsent.push_back(upload);
  return unsent;
}
Result<publish::UploadTotals> MemoryJournal::totals(const Publication&) {
  publish::UploadTotals totals;
  for (const auto& upload : disk_.journal.uploads) {
    ++totals.chunks;
    totals.bytes += upload.text_size;
    if (upload.chunk.empty()) continue;
    ++totals.chunks_done;
    totals.bytes_done += upload.text_size;
  }
  return totals;
}
Result<std::optional<publish::KnownChunk>> MemoryJournal::known_chunk(const ContentHash& text) {
  auto found = disk_.journal.known.find(text);
  return found == disk_.journal.known.end() ? std::nullopt : std::optional(found->second);
}
Result<std::optional<publish::KnownText>> MemoryJournal::known_text(const ChunkId& chunk) {
  auto found = disk_.journal.texts.find(chunk);
  return found == disk_.journal.texts.end() ? std::nullopt : std::optional(found->second);
}
Result<std::set<std::size_t>> MemoryJournal::known_sizes() {
  std::set<std::size_t> sizes;
  for (const auto& [hash, chunk] : disk_.journal.known) sizes.insert(chunk.size);
  return sizes;
}
Result<std::string> MemoryJournal::fact(const std::string& name) { return disk_.journal.facts[name]; }

Result<std::map<std::string, std::string>> MemoryJournal::facts(const std::string& prefix) {
  std::map<std::string, std::string> facts;
  for (const auto& [name, value] : disk_.journal.facts)
    if (name.starts_with(prefix) && !value.empty()) facts.emplace(name.substr(prefix.size()), value);
  return facts;
}

// The service, waited for.

class Client::Upstream final : public publish::Upstream {
 public:
  Upstream(Client& owner, remote::Client& client) : owner_(owner), client_(client), revisions_(owner.disk_.cache) {
    if (!owner.plan_.keeps_cache) revisions_.clear();
  }

  Result<Project> project() override {
    if (owner_.plan_.fault == Fault::patch_without_reread && first_look_) return first_look_->project;
    auto fetched = wait<remote::Fetched<Project>>(
        [&](auto done) { client_.get_project(owner_.plan_.project, {}, {}, std::move(done)); });
    if (!fetched) return fail(fetched.error());
    if (!fetched->value) return fail(ErrorCode::protocol, "no project");
    head_read_ = fetched->value->latest_revision;
    return *std::move(fetched->value);
  }
  Result<publish::Look> look() override {
    Fault fault = owner_.plan_.fault;
    if (fault == Fault::patch_without_reread && first_look_) {
      publish::Look look = *first_look_;
      if (!moved_to_.empty()) look.project.latest_revision = moved_to_;
      return look;
    }
    if (fault == Fault::no_verify && !moved_to_.empty() && first_look_) {
      publish::Look look = *first_look_;
      look.project.latest_revision = moved_to_;
      return look;
    }
    PLAYFS_TRY(auto project, this->project());
    PLAYFS_TRY(auto newest, page("revisions", ""));
    publish::Look look{std::move(project), std::move(newest)};
    first_look_ = look;
    moved_to_ = {};
    return look;
  }
  Result<wire::RecordPage> page(const std::string& collection, const std::string& cursor) override {
    auto page =
        wait<wire::RecordPage>([&](auto done) { client_.list_records(collection, 100, cursor, {}, std::move(done)); });
    if (page && owner_.plan_.fault == Fault::scan_cut_short && collection == "revisions") {
      if (page->records.size() > 1) page->records.resize(1);
      page->next_cursor.clear();
    }
    return page;
  }
  Result<Record> get(const std::string& collection, const std::string& id) override {
    return wait<Record>([&](auto done) { client_.get_record(collection, id, {}, std::move(done)); });
  }
  Result<RevisionTreePtr> revision(const RevisionId& id) override {
    if (auto known = revisions_.find(id); known != revisions_.end()) return known->second;
    PLAYFS_TRY(auto revision, wait<Revision>([&](auto done) { client_.get_revision(id, {}, std::move(done)); }));
    return take_in(std::move(revision));
  }
  Result<Bytes> content(const RevisionTreePtr&, const std::string&, const FileEntry& entry) override {
    if (auto content = entry.inline_content()) return *std::move(content);
    PLAYFS_TRY(auto chunks, this->chunks(entry.chunks));
    std::string text;
    for (const auto& chunk : chunks) text += chunk.content;
    return decode_content(text, entry.encoding).value_or("");
  }
  Result<std::vector<FileChunk>> chunks(const std::vector<ChunkId>& ids) override {
    std::vector<FileChunk> chunks;
    for (const auto& id : ids) {
      PLAYFS_TRY(auto chunk, wait<FileChunk>([&](auto done) { client_.get_chunk(id, {}, std::move(done)); }));
      chunks.push_back(std::move(chunk));
    }
    return chunks;
  }
  Result<Record> create(const std::string& collection, const Json& body, const std::string& key) override {
    bool is_other = owner_.plan_.fault == Fault::key_after_sending && collection == "revisions";
    return wait<Record>([&](auto done) {
      client_.create_record(collection, body, is_other ? owner_.world_.random.uuid() : key, {}, std::move(done));
    });
  }
  Status upload(const std::vector<publish::Upload>& uploads, const publish::Acknowledged& acknowledged) override {
    for (const auto& upload : uploads) {
      if (!upload.chunk.empty()) continue;
      PLAYFS_TRY(auto body, wire::parse_json(upload.body));
      PLAYFS_TRY(auto record, create("file_chunks", body, upload.key));
      publish::Upload stored = upload;
      stored.chunk = ChunkId(record.id);
      PLAYFS_CHECK(acknowledged({stored}));
    }
    return {};
  }
  Status move_head(const RevisionId& to) override {
    owner_.moves.push_back({head_read_, to, owner_.world_.now()});
    auto patched = wait<Record>([&](auto done) {
      client_.patch_record_now("projects", owner_.plan_.project.text(), JsonObject{{"latest_revision", to.text()}}, {},
                               std::move(done));
    });
    if (patched || owner_.plan_.fault == Fault::no_verify) moved_to_ = to;
    if (!patched) return fail(patched.error());
    return {};
  }
  void learn(const std::string& collection, const Record& record) override {
    if (collection != "revisions" || revisions_.contains(RevisionId(record.id))) return;
    if (auto known = owner_.plan_.decoded->find(RevisionId(record.id)); known != owner_.plan_.decoded->end()) {
      revisions_.insert(*known);
    } else if (auto revision = wire::decode_revision(record)) {
      static_cast<void>(take_in(*std::move(revision)));
    }
  }

 private:
  Result<RevisionTreePtr> take_in(Revision revision) {
    if (auto& more = revision.manifest.continuation) {
      PLAYFS_TRY(Bytes content, this->content(nullptr, kContinuationPath, more->entry));
      PLAYFS_TRY(std::string text, content.all());
      PLAYFS_CHECK(wire::read_continuation(revision.manifest, text));
    }
    RevisionId id = revision.id;
    return revisions_[id] = (*owner_.plan_.decoded)[id] = std::make_shared<RevisionTree>(std::move(revision));
  }

  template <class T, class Start>
  Result<T> wait(const Start& start) {
    owner_.instant();
    struct Slot {
      explicit Slot(World& world) : waiting(world) {}
      World::Waiting waiting;
      std::optional<Result<T>> result;
    };
    auto slot = std::make_shared<Slot>(owner_.world_);
    start(Callback<T>([slot](Result<T> result) {
      slot->result.emplace(std::move(result));
      slot->waiting.ready();
    }));
    slot->waiting.wait();
    owner_.instant();
    return *std::move(slot->result);
  }

  Client& owner_;
  remote::Client& client_;
  std::map<RevisionId, RevisionTreePtr>& revisions_;
  std::optional<publish::Look> first_look_;
  RevisionId moved_to_, head_read_;
};

// The work tree: whole files in a map.

class Client::Layers final : public publish::Layers {
 public:
  explicit Layers(Client& owner) : owner_(owner), disk_(owner.disk_) {}

  [[nodiscard]] RevisionTreePtr base() const override { return disk_.base; }
  [[nodiscard]] std::vector<FileRef> rules_needed() const override { return {}; }
  Result<std::optional<stage::Frozen>> freeze(const std::string& tx) override {
    owner_.instant();
    if (disk_.pending) return disk_.pending;
    stage::Frozen frozen;
    frozen.tx = tx;
    frozen.base = disk_.base ? disk_.base->revision.id : RevisionId();
    frozen.merge_parents = disk_.merge_parents;
    Files below = owner_.files_of(disk_.base);
    for (const auto& [path, content] : disk_.files) {
      if (auto old = below.find(path); old != below.end() && old->second == content) continue;
      frozen.files.push_back({.path = path,
                              .mode = FileMode::regular,
                              .hash = ContentHash::of(content),
                              .size = content.size(),
                              .published = {},
                              .spool = 1,
                              .target = {}});
    }
    for (const auto& [path, content] : below)
      if (!disk_.files.contains(path)) frozen.deletions.push_back(path);
    if (frozen.files.empty() && frozen.deletions.empty() && frozen.merge_parents.empty())
      return std::optional<stage::Frozen>();
    disk_.frozen = disk_.files;
    disk_.pending = frozen;
    owner_.instant();
    return std::optional(frozen);
  }
  Result<std::optional<stage::Frozen>> pending() const override { return disk_.pending; }
  Result<std::string> read_frozen(const stage::FrozenFile& file, std::uint64_t offset,
                                  std::size_t size) const override {
    return disk_.frozen.at(file.path).substr(offset, size);
  }
  Status settle(const std::string&, const RevisionTreePtr& base) override {
    owner_.instant();
    disk_.base = base;
    disk_.files = owner_.files_of(base);
    disk_.pending.reset();
    disk_.merge_parents.clear();
    owner_.instant();
    return {};
  }
  Status thaw(const std::string&) override {
    disk_.pending.reset();
    return {};
  }

 private:
  Client& owner_;
  Disk& disk_;
};

// The client.

/// What is gone when it is killed.
struct Client::Process {
  explicit Process(Client& owner)
      : clock(owner.world_, owner.plan_.skew),
        executor(owner.world_),
        transport(owner.world_, owner.service_, "10.0.0." + std::to_string(owner.number_ + 1), owner.plan_.weather,
                  owner.carried_),
        client(transport, executor, clock, owner.world_.random, {}),
        upstream(owner, client),
        layers(owner),
        journal(std::make_unique<MemoryJournal>(owner.disk_), [&owner](std::string_view, bool) { owner.instant(); }),
        events(clock),
        merging(upstream,
                owner.plan_.fault == Fault::merge_keeps_deleted
                    ? publish::MergeVersions([](const Version& base, const Version& ours, const Version& theirs,
                                                const ReadEntry& read, const MergeLabels& labels) -> Result<Merge> {
                        PLAYFS_TRY(Merge merge, merge_versions(base, ours, theirs, read, labels));
                        return without_deletions(std::move(merge), base, ours, theirs);
                      })
                    : publish::MergeVersions(merge_versions)),
        engine({.project = owner.plan_.project,
                .upstream = upstream,
                .layers = layers,
                .journal = journal,
                .events = events,
                .random = owner.world_.random,
                .clock = clock,
                .cancel = {},
                .policy = {},
                .progress = [](const publish::Progress&) {},
                .merging = merging}) {}

  SimulatedClock clock;
  SimulatedExecutor executor;
  SimulatedTransport transport;
  remote::Client client;
  Client::Upstream upstream;
  Client::Layers layers;
  publish::Journal journal;
  content::EventLog events;
  publish::Merging merging;
  publish::Engine engine;
};

Client::Client(World& world, const service::Service& service, int number, Plan plan,
               SimulatedTransport::Carried carried)
    : world_(world),
      service_(service),
      number_(number),
      agent_("client" + std::to_string(number)),
      plan_(std::move(plan)),
      carried_(std::move(carried)) {}

Client::~Client() = default;

Files Client::files_of(const RevisionTreePtr& revision) const {
  Files files;
  if (!revision) return files;
  for (const auto& [path, entry] : revision->tree.manifest().files) {
    std::string& text = files[path];
    text = entry.inline_text.value_or("");
    for (const auto& id : entry.chunks) text += plan_.chunk_text(id);
  }
  return files;
}

void Client::instant() {
  if (mortal_ && plan_.crash > 0 && world_.random.chance(plan_.crash)) throw Killed();
}

void Client::start() {
  world_.start([this] {
    try {
      live();
    } catch (const Killed&) {
      if (plan_.fault == Fault::synced_late) disk_.journal = disk_.synced_before;
      has_died = plan_.dies;
      mortal_ = ++crashes_ < kMostCrashes;
      if (!has_died) world_.at(seconds(world_.random.below(120)), [this] { start(); });
    }
  });
}

void Client::live() {
  Process process(*this);
  if (Status recovered = process.engine.recover(); !recovered) return;
  for (;;) {
    while (!run_front(process)) {
    }
    if (committed_ == plan_.commits) return;
    world_.sleep(milliseconds(world_.random.below(4000)));
    edit_and_enqueue(process);
  }
}

/// Runs what is first in the journal; fails where it has to be tried again, after the rest that this takes.
Status Client::run_front(Process& process) {
  for (int streak = 1;; ++streak) {
    PLAYFS_TRY(auto front, process.journal.front());
    if (!front) return {};
    Status ran = process.engine.run(*front);
    if (ran) {
      auto result = publish::result_of(*front);
      ++committed_;
      if (result) {
        told.push_back({front->tx, result->outcome, result->revision, world_.now()});
        after_commit(process, *result);
      }
      streak = 0;
      continue;
    }
    world_.sleep(publish::rest_after(ran.error(), streak, seconds(1), seconds(60)));
  }
}

void Client::edit_and_enqueue(Process& process) {
  auto& random = world_.random;
  // A clean tree follows head, mostly.
  if (disk_.merge_parents.empty() && random.chance(0.7)) {
    auto project = process.upstream.project();
    auto head = project && !project->latest_revision.empty() ? process.upstream.revision(project->latest_revision)
                                                             : fail(ErrorCode::not_found, "no head");
    auto branch = process.journal.branch();
    if (head && branch && branch->empty()) {
      disk_.base = *head;
      disk_.files = files_of(disk_.base);
    }
  }
  std::string tx = random.hex(32);
  std::string own = agent_ + "-" + std::to_string(committed_) + "-" + tx.substr(0, 6);
  Files& files = disk_.files;
  files[own] = "brought by " + own + (random.chance(0.05) ? std::string(9'000, 'x') : "") + "\n";
  brought[tx] = {own, files[own]};
  if (random.chance(0.5)) {
    // A file of its own, there from the beginning, goes for good.
    std::string victim = "victim-" + std::to_string(number_);
    if (files.erase(victim) != 0) deleted[tx] = victim;
  }
  if (random.chance(0.7)) {
    // Lines that others change too; those far apart merge.
    auto lines = lines_of(files["shared"]);
    if (lines.size() < 20) lines.resize(20, "line");
    lines[random.below(20)] = own;
    files["shared"] = joined(lines);
  }
  // Half a transaction: the tree is edited, and the commit not asked for yet.
  instant();
  static_cast<void>(process.journal.enqueue(tx, agent_, "message of " + own));
}

void Client::after_commit(Process& process, const publish::CommitResult& result) {
  if (result.outcome != publish::Outcome::branched || !world_.random.chance(0.6)) return;
  // The user takes head in and resolves for both sides: `playfs update`, then the next commit publishes it.
  auto project = process.upstream.project();
  if (!project || project->latest_revision.empty()) return;
  auto head = process.upstream.revision(project->latest_revision);
  if (!head || !disk_.base) return;
  auto holdings = Holdings::compare({(*head)->revision.id, disk_.base->revision.id}, process.merging.links());
  if (!holdings) return;
  Files merged = files_of(*head);
  bool holds = holdings->covers((*head)->revision.id, disk_.base->revision.id);
  auto base = process.merging.base_of({(*head)->revision.id}, disk_.base->revision.id);
  if (!base || !base->unknown.empty()) return;
  const Manifest& common = base->snapshot.manifest;
  for (const auto& [path, content] : disk_.files)
    if (!merged.contains(path) && !common.files.contains(path)) merged[path] = content;
  for (const auto& [path, entry] : common.files)
    if (!disk_.files.contains(path)) merged.erase(path);
  if (!holds) disk_.merge_parents = {disk_.base->revision.id};
  disk_.files = std::move(merged);
  disk_.base = *head;
  static_cast<void>(process.journal.record_no_branch());
}

Result<publish::Standing> Client::visit() {
  mortal_ = false;
  plan_.weather = {};
  Process process(*this);
  return process.engine.visit(agent_);
}

}  // namespace playfs::sim
