#include "fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::vfs::test {

void RecordedNotifications::entry_changed(NodeId parent, const std::string& name) {
  MutexLock lock(mutex_);
  entries_.emplace_back(parent, name);
}

void RecordedNotifications::node_changed(NodeId node, std::int64_t) {
  MutexLock lock(mutex_);
  nodes_.push_back(node);
}

bool RecordedNotifications::of_entry(NodeId parent, const std::string& name) const {
  MutexLock lock(mutex_);
  return std::find(entries_.begin(), entries_.end(), std::pair(parent, name)) != entries_.end();
}

bool RecordedNotifications::of_node(NodeId node) const {
  MutexLock lock(mutex_);
  return std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end();
}

Service::Service() {
  auto opened = runtime::LocalPlayground::open(directory_.path(), {}, clock, random);
  if (!opened) std::abort();
  playground_ = std::move(*opened);
  transport_ =
      std::make_unique<runtime::LocalTransport>(playground_->service(), playground_->store().site_id(), executor_);
  client_ = std::make_unique<remote::Client>(*transport_, executor_, clock, random, remote::ClientOptions{});
}

Record Service::create(const std::string& collection, JsonObject body) {
  auto record =
      await<Record>([&](auto done) { client_->create_record(collection, body, random.uuid(), {}, std::move(done)); });
  EXPECT_TRUE(record) << record.error().message;
  return record.value_or(Record{});
}

void Service::patch(const std::string& collection, const std::string& id, JsonObject body) {
  auto record = await<Record>([&](auto done) { client_->patch_record(collection, id, body, {}, std::move(done)); });
  EXPECT_TRUE(record) << record.error().message;
}

Record Service::get(const std::string& collection, const std::string& id) {
  auto record = await<Record>([&](auto done) { client_->get_record(collection, id, {}, std::move(done)); });
  EXPECT_TRUE(record) << record.error().message;
  return record.value_or(Record{});
}

ProjectId Service::project(const std::string& name) { return ProjectId(create("projects", {{"name", name}}).id); }

RevisionId Service::publish(const ProjectId& project, JsonObject files, const std::string& parent) {
  Json::Array parents;
  if (!parent.empty()) parents.emplace_back(parent);
  RevisionId id(create("revisions", {{"project", project.text()},
                                     {"parents", parents},
                                     {"agent", "stranger"},
                                     {"message", "a revision"},
                                     {"manifest", JsonObject{{"files", std::move(files)}}}})
                    .id);
  patch("projects", project.text(), {{"latest_revision", id.text()}});
  return id;
}

Json Service::file(const std::string& text) {
  return JsonObject{{"h", ContentHash::of(text).hex()}, {"s", std::uint64_t{text.size()}}, {"inline", text}};
}

Mounted::Mounted(Service& service, const std::function<void(FileSystemOptions&)>& adjust,
                 const std::string& state_directory)
    : network(service.transport()) {
  caller.uid = ::getuid();
  caller.gid = ::getgid();
  remote::ClientOptions client_options;
  client_options.retry.attempts = 1;
  client_ = std::make_unique<remote::Client>(network, executor_, clock, random_, client_options);
  objects_ = std::move(*cache::ObjectStore::open(directory_ / "objects"));
  records_ = std::move(*cache::RecordIndex::open(directory_.path()));
  events_ = std::make_unique<content::EventLog>(clock);
  FileSystemOptions options;
  options.state_directory = state_directory.empty() ? directory_ / "state" : state_directory;
  options.mount_source = "local:test";
  options.agent = "tester";
  options.uid = ::getuid();
  options.gid = ::getgid();
  options.refresh = std::chrono::milliseconds(100);
  if (adjust) adjust(options);
  content::SiteOptions site_options;
  site_options.refresh = options.refresh;
  site_options.prefetch = false;
  site_ = std::make_unique<content::Site>(*client_, *objects_, *records_, executor_, clock, *events_, site_options);
  EXPECT_TRUE(make_private_directory(options.state_directory));
  fs_ = std::make_unique<MountFileSystem>(*site_, clock, executor_, random_, options);
  fs_->set_notifier(&told);
}

Mounted::~Mounted() {
  fs_->set_notifier(nullptr);
  fs_.reset();
  network.open();
  site_.reset();
  executor_.stop();
}

Result<Entry> Mounted::lookup(NodeId parent, const std::string& name) {
  PLAYFS_TRY(Entry entry, await<Entry>([&](auto done) { fs_->lookup(caller, parent, name, std::move(done)); }));
  if (entry.node == 0 || entry.attributes_timeout > 0) return entry;
  // As the kernel does before it returns them to a process or opens the file.
  PLAYFS_TRY(AttributesReply now,
             await<AttributesReply>([&](auto done) { fs_->get_attributes(caller, entry.node, std::move(done)); }));
  entry.attributes = now.attributes;
  entry.attributes_timeout = now.timeout;
  return entry;
}

Result<Entry> Mounted::walk(const std::string& path) {
  Entry entry;
  entry.node = kRootNode;
  for (std::size_t begin = 0; begin < path.size();) {
    std::size_t end = std::min(path.find('/', begin), path.size());
    std::string name = path.substr(begin, end - begin);
    PLAYFS_TRY(entry, lookup(entry.node, name));
    if (entry.node == 0) return fail(ErrorCode::not_found, name);
    begin = end + 1;
  }
  return entry;
}

Result<std::string> Mounted::read(NodeId node, std::uint64_t offset, std::size_t size) {
  return await<std::string>([&](auto done) { fs_->read(caller, node, offset, size, std::move(done)); });
}

Result<std::string> Mounted::read_file(const std::string& path) {
  PLAYFS_TRY(Entry entry, walk(path));
  PLAYFS_TRY(std::string bytes, read(entry.node));
  // The kernel truncates to the size it was told; a size that it may not cache is only an upper bound.
  if (entry.attributes_timeout > 0) {
    EXPECT_EQ(bytes.size(), entry.attributes.size) << path;
  } else {
    EXPECT_LE(bytes.size(), entry.attributes.size) << path;
  }
  return bytes;
}

Result<std::string> Mounted::read_link(const std::string& path) {
  PLAYFS_TRY(Entry entry, walk(path));
  return await<std::string>([&](auto done) { fs_->read_link(caller, entry.node, std::move(done)); });
}

Result<std::size_t> Mounted::write(NodeId node, const std::string& data, std::uint64_t offset) {
  return await<std::size_t>([&](auto done) { fs_->write(caller, node, offset, data, std::move(done)); });
}

Status Mounted::write_file(const std::string& path, const std::string& data) {
  std::size_t slash = path.rfind('/');
  PLAYFS_TRY(Entry parent, walk(slash == std::string::npos ? std::string() : path.substr(0, slash)));
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  PLAYFS_TRY(Entry file, lookup(parent.node, name));
  if (file.node == 0) {
    PLAYFS_TRY(file, await<Entry>([&](auto done) {
                 fs_->make_node(caller, parent.node, name, S_IFREG | 0644, 0, std::move(done));
               }));
  }
  SetAttributes empty;
  empty.size = 0;
  PLAYFS_CHECK(await<AttributesReply>([&](auto done) {
                 fs_->set_attributes(caller, file.node, empty, std::move(done));
               }).map([](const AttributesReply&) {}));
  PLAYFS_TRY(std::size_t written, write(file.node, data));
  EXPECT_EQ(written, data.size());
  return {};
}

Result<std::vector<std::string>> Mounted::list(const std::string& path) {
  PLAYFS_TRY(Entry directory, walk(path));
  std::vector<std::string> names;
  std::uint64_t offset = 0;
  for (bool more = true; more;) {
    more = false;
    // Three at a time: offsets must work as continuation points.
    int left = 3;
    auto room = [&](const DirectoryItem& item) {
      if (left-- == 0) return false;
      if (item.name != "." && item.name != "..") names.push_back(item.name);
      offset = item.next_offset;
      more = true;
      return true;
    };
    PLAYFS_CHECK(
        await<void>([&](auto done) { fs_->list(caller, directory.node, offset, false, room, std::move(done)); }));
  }
  return names;
}

Result<std::string> Mounted::xattr(const std::string& path, const std::string& name) {
  PLAYFS_TRY(Entry entry, walk(path));
  return await<std::string>([&](auto done) { fs_->get_xattr(caller, entry.node, name, std::move(done)); });
}

Result<CommitResult> Mounted::commit(const std::string& path, const std::string& message) {
  PLAYFS_TRY(Entry entry, walk(path));
  CommitRequest request;
  request.message = message;
  return await<CommitResult>([&](auto done) { fs_->commit(caller, entry.node, request, std::move(done)); });
}

}  // namespace playfs::vfs::test
