#include "simulated_mount.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/await.h"
#include "base/fd.h"
#include "net/curl_transport.h"

namespace playfs::bench {

namespace {
vfs::Caller caller() { return {::geteuid(), ::getegid(), ::getpid(), {}}; }
}  // namespace

Result<std::unique_ptr<SimulatedMount>> SimulatedMount::open(const Place& place, RequestCounts& counts,
                                                             const Clock& clock, Random& random, Executor& executor) {
  std::unique_ptr<SimulatedMount> mount(new SimulatedMount());
  PLAYFS_CHECK(make_private_directory(place.directory));
  const std::string state = place.directory + "/state";
  PLAYFS_CHECK(make_private_directory(state));
  PLAYFS_TRY(auto network, net::CurlTransport::create(place.origin, {}));
  mount->transport_ = std::make_unique<CountedTransport>(std::move(network), counts, place.address);
  mount->client_ =
      std::make_unique<remote::Client>(*mount->transport_, executor, clock, random, remote::ClientOptions());
  PLAYFS_TRY(mount->objects_, cache::ObjectStore::open(place.directory + "/objects"));
  PLAYFS_TRY(mount->records_, cache::RecordIndex::open(place.directory));
  mount->events_ = std::make_unique<content::EventLog>(clock);
  mount->site_ = std::make_unique<content::Site>(*mount->client_, *mount->objects_, *mount->records_, executor, clock,
                                                 *mount->events_, content::SiteOptions());
  mount->site_->use_events(random);
  vfs::FileSystemOptions options;
  options.state_directory = state;
  options.mount_source = place.origin;
  options.agent = place.agent;
  options.uid = ::geteuid();
  options.gid = ::getegid();
  mount->files_ = std::make_unique<vfs::MountFileSystem>(*mount->site_, clock, executor, random, std::move(options));
  return mount;
}

SimulatedMount::~SimulatedMount() {
  files_.reset();
  site_.reset();
  client_.reset();
}

Result<vfs::Entry> SimulatedMount::lookup(vfs::NodeId parent, const std::string& name) {
  return await<vfs::Entry>([&](auto done) { files_->lookup(caller(), parent, name, std::move(done)); });
}

Result<vfs::Entry> SimulatedMount::walk(const std::string& path) {
  vfs::Entry entry;
  entry.node = vfs::kRootNode;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    PLAYFS_TRY(entry, lookup(entry.node, name));
    if (entry.node == 0) return fail(ErrorCode::not_found, path + ": " + name);
    if (S_ISLNK(entry.attributes.mode)) {
      PLAYFS_TRY(const std::string target,
                 await<std::string>([&](auto done) { files_->read_link(caller(), entry.node, std::move(done)); }));
      return walk(path.substr(0, begin) + target + path.substr(end));
    }
    begin = end + 1;
  }
  return entry;
}

Status SimulatedMount::look_at(const std::string& path) {
  PLAYFS_TRY(const vfs::Entry entry, walk(path));
  PLAYFS_CHECK(
      await<vfs::AttributesReply>([&](auto done) { files_->get_attributes(caller(), entry.node, std::move(done)); }));
  return {};
}

Status SimulatedMount::list(const std::string& directory) {
  PLAYFS_TRY(const vfs::Entry entry, walk(directory));
  auto room = [](const vfs::DirectoryItem&) { return true; };
  return await<void>([&](auto done) { files_->list(caller(), entry.node, 0, false, room, std::move(done)); });
}

Result<std::string> SimulatedMount::read(const std::string& path) {
  PLAYFS_TRY(const vfs::Entry entry, walk(path));
  return await<std::string>([&](auto done) { files_->read(caller(), entry.node, 0, 1 << 20, std::move(done)); });
}

Status SimulatedMount::write(const std::string& path, const std::string& text) {
  const std::size_t slash = path.rfind('/');
  PLAYFS_TRY(const vfs::Entry parent, walk(path.substr(0, slash)));
  PLAYFS_TRY(vfs::Entry file, lookup(parent.node, path.substr(slash + 1)));
  if (file.node == 0) {
    PLAYFS_TRY(file, await<vfs::Entry>([&](auto done) {
                 files_->make_node(caller(), parent.node, path.substr(slash + 1), S_IFREG | 0644, 0, std::move(done));
               }));
  }
  vfs::SetAttributes empty;
  empty.size = 0;
  PLAYFS_CHECK(await<vfs::AttributesReply>(
      [&](auto done) { files_->set_attributes(caller(), file.node, empty, std::move(done)); }));
  PLAYFS_TRY(auto written,
             await<std::size_t>([&](auto done) { files_->write(caller(), file.node, 0, text, std::move(done)); }));
  if (written != text.size()) return fail(ErrorCode::io, path + ": written in part");
  return {};
}

Result<vfs::CommitResult> SimulatedMount::commit(const std::string& work_tree, const std::string& message) {
  PLAYFS_TRY(const vfs::Entry root, walk(work_tree));
  vfs::CommitRequest request;
  request.message = message;
  return await<vfs::CommitResult>([&](auto done) { files_->commit(caller(), root.node, request, std::move(done)); });
}

RevisionId SimulatedMount::shown(const ProjectId& project) const {
  const auto head = site_->try_head(project);
  return head ? head->shown.value_or(RevisionId()) : RevisionId();
}

}  // namespace playfs::bench
