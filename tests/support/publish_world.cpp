#include "support/publish_world.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "base/await.h"
#include "base/sqlite.h"
#include "model/chunking.h"
#include "wire/continuation.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::test {

namespace {

/// Unwraps a test's own preparations, which must not fail.
template <class T>
T take(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

void wait_until(const std::function<bool()>& holds, const std::string& what) {
  if (!eventually(holds, std::chrono::minutes(4))) throw std::runtime_error("in vain waited until " + what);
}

remote::ClientOptions with_quick_retries() {
  remote::ClientOptions options;
  options.retry.first_delay = options.retry.longest_delay = std::chrono::milliseconds(1);
  return options;
}

remote::ClientOptions without_retries() {
  remote::ClientOptions options;
  options.retry.attempts = 1;
  options.retry.longest_obeyed = std::chrono::seconds(0);
  return options;
}

}  // namespace

void copy_directory(const std::string& from, const std::string& to) {
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

World::World()
    : playground_(take(runtime::LocalPlayground::open(directory_.path() + "/playground", {}, clock, random))) {
  transport_ =
      std::make_unique<runtime::LocalTransport>(playground_->service(), playground_->store().site_id(), executor_);
  client_ = std::make_unique<remote::Client>(*transport_, executor_, clock, random, without_retries());
}

World::~World() = default;

Record World::create(const std::string& collection, const std::string& body) {
  return take(await<Record>([&](auto done) {
    client_->create_record(collection, take(wire::parse_json(body)), random.uuid(), {}, std::move(done));
  }));
}

void World::change(const std::string& collection, const std::string& id, const std::string& body) {
  take(await<Record>(
      [&](auto done) { client_->patch_record(collection, id, take(wire::parse_json(body)), {}, std::move(done)); }));
}

void World::set_head(const std::string& project, const std::string& revision) {
  change("projects", project, R"({"latest_revision":")" + revision + R"("})");
}

Record World::get(const std::string& collection, const std::string& id) {
  return take(await<Record>([&](auto done) { client_->get_record(collection, id, {}, std::move(done)); }));
}

std::string World::head(const std::string& project) {
  return take(wire::decode_project(get("projects", project))).latest_revision.text();
}

std::vector<Record> World::all(const std::string& collection) {
  std::vector<Record> records;
  std::string cursor;
  do {
    auto page = take(await<wire::RecordPage>(
        [&](auto done) { client_->list_records(collection, 100, cursor, {}, std::move(done)); }));
    std::move(page.records.begin(), page.records.end(), std::back_inserter(records));
    cursor = page.next_cursor;
  } while (!cursor.empty());
  return records;
}

Contents World::contents(const std::string& revision) {
  Contents contents;
  Manifest manifest = take(wire::decode_revision(get("revisions", revision))).manifest;
  auto content_of = [&](const FileEntry& entry) {
    std::string text = entry.inline_text.value_or("");
    for (const auto& id : entry.chunks) text += take(wire::decode_chunk(get("file_chunks", id.text()))).content;
    return decode_content(text, entry.encoding).value_or("(not base64)");
  };
  if (manifest.continuation && !wire::read_continuation(manifest, content_of(manifest.continuation->entry)))
    show_continuation(manifest);
  for (const auto& [path, entry] : manifest.files) contents[path] = content_of(entry);
  return contents;
}

void World::back_up(const std::string& name) {
  auto store = take(Database::open(directory_.path() + "/playground/playground.db", Database::Durability::full));
  const std::string file = directory_.path() + "/" + name + ".db";
  std::filesystem::remove(file);
  take(store.backup_to(file));
}

void World::restore(const std::string& name) {
  auto store = take(Database::open(directory_.path() + "/playground/playground.db", Database::Durability::full));
  take(store.execute("ATTACH '" + directory_.path() + "/" + name + ".db' AS backup"));
  auto transaction = take(Transaction::begin(store));
  take(store.execute("DELETE FROM main.records; INSERT INTO main.records SELECT * FROM backup.records"));
  take(transaction.commit());
}

WorkTree::WorkTree(World& world, std::string project, std::string directory, FaultyTransport::Plan plan,
                   publish::JournalProbe probe, bool reconciles, bool repeats, publish::MergePolicy policy,
                   std::chrono::milliseconds late_arrival)
    : faults(world.transport()),
      journal_directory_(directory + "/journal"),
      executor_(std::make_unique<ThreadPool>(2)) {
  client_ = std::make_unique<remote::Client>(faults, *executor_, world.clock, world.random,
                                             repeats ? with_quick_retries() : without_retries());
  objects_ = take(cache::ObjectStore::open(directory + "/cache"));
  records_ = take(cache::RecordIndex::open(directory + "/cache"));
  events = std::make_unique<content::EventLog>(world.clock);
  site = std::make_unique<content::Site>(*client_, *objects_, *records_, *executor_, world.clock, *events,
                                         content::SiteOptions());
  const std::string stage_directory = directory + "/stage";
  auto base = take(stage::Stage::recorded_base(stage_directory));
  if (!base)
    base = take(await<content::Head>([&](auto done) {
             site->head(ProjectId(project), {}, std::move(done));
           })).project.latest_revision;
  RevisionTreePtr tree;
  if (!base->empty())
    tree = take(await<RevisionTreePtr>([&](auto done) { site->revision(*base, {}, std::move(done)); }));
  stage = take(stage::Stage::open(
      {.directory = stage_directory, .uid = 0, .gid = 0, .umask = 022, .descriptors = 16, .read_lower = {}},
      world.clock, tree));
  faults.set_plan(std::move(plan));
  publish::PublisherOptions options;
  options.first_backoff = std::chrono::milliseconds(2);
  options.longest_backoff = std::chrono::milliseconds(20);
  options.late_arrival = late_arrival;
  options.probe = std::move(probe);
  options.reconciles = reconciles;
  options.policy = std::move(policy);
  publisher = take(publish::Publisher::open(journal_directory_, ProjectId(project), *site, *stage, *executor_,
                                            world.clock, world.random, {}, options));
}

WorkTree::~WorkTree() {
  publisher.reset();
  // Pending work refers to the client: destroy users before what they use, and stop the threads before the transport
  // goes.
  site.reset();
  client_.reset();
  executor_->stop();
}

Result<bool> WorkTree::keep_lost_base(const RevisionTreePtr& head) {
  Result<bool> kept;
  auto is_known = [&] {
    kept = await<bool>([&](auto done) { publisher->keep_lost_base(head, {}, std::move(done)); });
    return kept || kept.error().code != ErrorCode::busy;
  };
  wait_until(is_known, "it is known whether the base is lost");
  return kept;
}

void WorkTree::kill() { faults.cut(); }

stage::InodePtr WorkTree::directory_of(const std::string& path, std::string& name) {
  auto directory = stage->root();
  std::size_t start = 0;
  for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', start)) {
    auto component = path.substr(start, slash - start);
    auto found = stage->lookup(directory, component);
    directory = found ? *found : take(stage->make_directory(directory, component, {.permissions = 0755}));
    start = slash + 1;
  }
  name = path.substr(start);
  return directory;
}

void WorkTree::write(const std::string& path, const std::string& content, unsigned permissions) {
  std::string name;
  auto directory = directory_of(path, name);
  auto found = stage->lookup(directory, name);
  auto file = found ? *found : take(stage->make_file(directory, name, {.permissions = permissions}));
  take(stage->set_attributes(file,
                             {.permissions = permissions, .uid = {}, .gid = {}, .size = 0, .atime = {}, .mtime = {}}));
  take(stage->write(file, 0, content));
}

void WorkTree::rename(const std::string& from, const std::string& to) {
  std::string name, new_name;
  auto directory = directory_of(from, name);
  auto new_directory = directory_of(to, new_name);
  take(stage->rename(directory, name, new_directory, new_name, stage::RenameMode::replace));
}

void WorkTree::remove(const std::string& path) {
  std::string name;
  auto directory = directory_of(path, name);
  take(stage->unlink(directory, name));
}

std::string WorkTree::read(const std::string& path) {
  std::string name;
  auto directory = directory_of(path, name);
  auto file = take(stage->lookup(directory, name));
  if (auto below = stage->lower_content(file)) {
    auto blob = take(await<content::Blob>([&](auto done) { site->blob(*below, {}, std::move(done)); }));
    return take(blob.read(0, blob.size()));
  }
  return take(stage->read(file, 0, take(stage->attributes(file)).size));
}

Result<publish::CommitResult> WorkTree::commit(const std::string& message) {
  return await<publish::CommitResult>([&](auto done) {
    publisher->commit({.agent = "tester", .message = message, .wait = true, .allow_merge = true}, {}, std::move(done));
  });
}

void WorkTree::wait_until_idle() {
  // Only the journal shows that a resumed publication has ended.
  auto journal = take(publish::Journal::open(journal_directory_));
  wait_until([&] { return !take(journal->front()) && publisher->progress().tx.empty(); }, "the publication has ended");
}

void WorkTree::wait_until_it_fails() {
  wait_until([&] { return publisher->progress().last_error.has_value(); }, "the publication reports an error");
}

void WorkTree::wait_until_queued(std::size_t commits) {
  wait_until([&] { return take(publisher->queue()).size() >= commits; },
             std::to_string(commits) + " commits are queued");
}

}  // namespace playfs::test
