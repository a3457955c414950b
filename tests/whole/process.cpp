#include "whole/process.h"

#include <cstdlib>
#include <set>
#include <utility>

#include "base/await.h"
#include "cache/record_database.h"
#include "publish/conflicts.h"
#include "publish/journal.h"
#include "stage/store/tables.h"
#include "whole/disk.h"
#include "whole/faults.h"

namespace playfs::sim {

namespace {

struct EmptyDatabases {
  EmptyDatabases() {
    const std::string home = std::string(Disks::kRoot) + "/empty";
    home_of_process = Disks::all().make_directory(home + "/home");
    Disks::all().make_directory(home + "/home/stage");
    Disks::all().make_directory(home + "/home/journal");
    cache = Disks::all().make_directory(home + "/cache");
    if (!stage::Tables::open(home + "/home/stage/stage.db", true) ||
        !publish::open_journal_database(home + "/home/journal") ||
        !cache::RecordDatabase::open(home + "/cache/records.db"))
      std::abort();
    Disks::all().remove(home);
  }
  DiskFilePtr home_of_process, cache;
};

const EmptyDatabases& empty_databases() {
  static const EmptyDatabases databases;
  return databases;
}

}  // namespace

std::shared_ptr<Cache> Cache::open(const std::string& directory) {
  Disks::all().copy(empty_databases().cache, directory, false);
  auto cache = std::make_shared<Cache>();
  auto objects = cache::ObjectStore::open(directory);
  auto records = cache::RecordIndex::open(directory);
  if (!objects || !records) std::abort();
  cache->objects = *std::move(objects);
  cache->records = *std::move(records);
  return cache;
}

void make_home(const std::string& directory, bool forgets) {
  Disks::all().copy(empty_databases().home_of_process, directory, forgets);
}

Process::Process(Parts parts)
    : parts_(std::move(parts)),
      clock_(parts_.world, parts_.skew),
      transport_(parts_.world, parts_.service, parts_.address, parts_.weather, parts_.watcher),
      events_(std::make_unique<content::EventLog>(clock_)),
      executor_(std::make_unique<SimulatedExecutor>(parts_.world)),
      client_(std::make_unique<remote::Client>(transport_, *executor_, clock_, parts_.world.random,
                                               remote::ClientOptions())) {
  content::SiteOptions options;
  options.refresh = std::chrono::seconds(30);
  options.prefetch = false;
  site_ = std::make_unique<content::Site>(*client_, *parts_.cache->objects, *parts_.cache->records, *executor_, clock_,
                                          *events_, options);
}

Process::~Process() {
  is_ending_ = true;
  interrupt();
  following_.wait(parts_.world);
  publisher_.reset();
  // Outstanding work refers to the client, so this is destroyed before what it uses.
  site_.reset();
  client_.reset();
  executor_.reset();
  stage_.reset();
}

void Process::interrupt() {
  transport_.cut();
  stop_.cancel();
}

Status Process::open() {
  const std::string directory = parts_.directory + "/stage";
  PLAYFS_TRY(auto base, stage::Stage::recorded_base(directory));
  if (!base) {
    PLAYFS_TRY(auto head, await<content::Head>(
                              [&](auto done) { site_->refresh_head(parts_.project, stop_.token(), std::move(done)); }));
    base = head.project.latest_revision;
  }
  RevisionTreePtr tree;
  if (!base->empty()) {
    PLAYFS_TRY(tree,
               await<RevisionTreePtr>([&](auto done) { site_->revision(*base, stop_.token(), std::move(done)); }));
  }
  PLAYFS_TRY(stage_, stage::Stage::open(
                         {.directory = directory,
                          .descriptors = 16,
                          .housekeeping = parts_.housekeeping,
                          .boot = parts_.boot,
                          .read_lower = [this](const FileRef& file, std::size_t most) -> std::optional<std::string> {
                            auto blob = site_->try_blob(file);
                            auto text = blob ? blob->read(0, most) : Result<std::string>(fail(ErrorCode::offline, ""));
                            return text ? std::optional(*std::move(text)) : std::nullopt;
                          }},
                         clock_, tree));
  publish::PublisherOptions options;
  options.probe = parts_.probe;
  options.agent = parts_.agent;
  auto opened = publish::Publisher::open(parts_.directory + "/journal", parts_.project, *site_, *stage_, *executor_,
                                         clock_, parts_.world.random, {}, std::move(options));
  if (!opened) {
    stage_.reset();
    return fail(opened.error());
  }
  publisher_ = *std::move(opened);
  site_->on_head_changed([this](const ProjectId& changed, const RevisionTreePtr& head) {
    if (changed != parts_.project || is_ending_) return;
    // It may send a request, which must not be waited for here.
    follow_head_in(std::chrono::seconds(0), head);
  });
  site_->follow(parts_.project);
  return {};
}

bool Process::is_known_to_hold(const RevisionTreePtr& head, const RevisionTreePtr& base) const {
  std::vector<RevisionTreePtr> left{head};
  std::set<RevisionId> looked;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i]->revision.id == base->revision.id) return true;
    for (const RevisionId& parent : left[i]->revision.parents) {
      if (parent == base->revision.id) return true;
      if (!looked.insert(parent).second) continue;
      if (auto tree = site_->try_revision(parent)) left.push_back(std::move(tree));
    }
  }
  return false;
}

void Process::follow_head_in(std::chrono::seconds delay, const RevisionTreePtr& head) {
  following_.begin();
  executor_->post_after(delay, [this, head] {
    follow_head(head);
    following_.end(parts_.world);
  });
}

void Process::follow_head(const RevisionTreePtr& head) {
  if (is_ending_) return;
  publisher_->reconcile();
  auto base = stage_->base();
  if (!head || (base && head->revision.id == base->revision.id)) return;
  if (base && !is_known_to_hold(head, base)) {
    auto there = await<Record>(
        [&](auto done) { client_->get_record("revisions", base->revision.id.text(), stop_.token(), std::move(done)); });
    if (!there && there.error().code != ErrorCode::not_found) return;
    if (!there) {
      auto lost = await<bool>([&](auto done) { publisher_->keep_lost_base(head, stop_.token(), std::move(done)); });
      if (!lost && lost.error().code == ErrorCode::busy) follow_head_in(std::chrono::seconds(10), head);
      if (!lost || *lost) return;
    }
    if (stage_->base() != base) return;
    // News of an older head may arrive last, as in a mount.
    auto known = site_->try_head(parts_.project);
    if (!known || known->shown != head->revision.id) return;
  }
  if (is_free_to_follow()) static_cast<void>(stage_->move_base(head, id_of(base)));
}

bool Process::is_free_to_follow() const {
  if (publisher_->branch() || !stage_->is_clean()) return false;
  if (planted == Fault::conflict_followed) return true;
  auto conflicts = publish::unresolved(*stage_);
  return conflicts && conflicts->empty();
}

Result<publish::Integrated> Process::update(const RevisionTreePtr& head) {
  if (auto base = stage_->base(); base && base->revision.id != head->revision.id && !is_known_to_hold(head, base))
    PLAYFS_CHECK(await<bool>([&](auto done) { publisher_->keep_lost_base(head, stop_.token(), std::move(done)); }));
  return await<publish::Integrated>([&](auto done) { publisher_->update(head, stop_.token(), std::move(done)); });
}

}  // namespace playfs::sim
