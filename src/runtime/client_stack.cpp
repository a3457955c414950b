#include "runtime/client_stack.h"

#include <sys/stat.h>

#include <cstdint>

#include "base/fd.h"
#include "base/log.h"
#include "base/private_place.h"
#include "net/curl_transport.h"
#include "runtime/cache_limits.h"
#include "runtime/credentials.h"
#include "runtime/local_playground.h"
#include "runtime/local_transport.h"

namespace playfs::runtime {

namespace {

/// Fetches wait for the network, not for a core; these threads only decode and hash.
constexpr unsigned kThreads = 4;

/// Differs whenever the file was replaced or changed.
struct KeyFile {
  ino_t inode = 0;
  off_t size = 0;
  std::int64_t changed = 0;
  bool operator==(const KeyFile&) const = default;
};

KeyFile look_at_key_file(const Places& places) {
  struct stat info {};
  if (lstat(credentials_path(places).c_str(), &info) != 0) return {};
  return {info.st_ino, info.st_size, info.st_ctim.tv_sec * 1'000'000'000 + info.st_ctim.tv_nsec};
}

}  // namespace

// In the order of their dependencies.
struct ClientStack::Parts {
  Source source;
  std::string state_root;
  std::string state;  // below it
  Places places;      // of a host's key
  KeyFile key_file;   // as it was when the key was read
  const Clock& clock;
  Random& random;
  ThreadPool pool{kThreads};
  std::unique_ptr<LocalPlayground> playground;  // of an embedded source
  std::unique_ptr<net::Transport> transport;
  std::unique_ptr<remote::Client> client;
  std::unique_ptr<cache::ObjectStore> objects;
  std::unique_ptr<cache::RecordIndex> records;
  std::unique_ptr<content::EventLog> events;
  std::unique_ptr<content::Site> site;

  Parts(Source from, const Clock& clock_to_use, Random& random_to_use)
      : source(std::move(from)), clock(clock_to_use), random(random_to_use) {}
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  // Drops waiting tasks first, since they refer to the other parts.
  ~Parts() { pool.stop(); }

  /// Looks for a new key from time to time, since a mount outlives many logins.
  void follow_key() {
    pool.post_after(kKeyTakenUp, [this] {
      take_new_key();
      follow_key();
    });
  }

 private:
  void take_new_key() {
    const KeyFile now = look_at_key_file(places);
    if (now == key_file) return;
    key_file = now;
    // One that cannot be read, or that others can read, may be about to be mended: until then the old key stays.
    auto login = login_at(source, places);
    if (!login) return log_warning("the key for " + source.text + " stays as it was: " + login.error().message);
    Login taken = std::move(*login).value_or(Login());
    client->set_api_key(std::move(taken.api_key), std::move(taken.email));
  }
};

Result<std::unique_ptr<net::Transport>> open_transport(const Source& source, const Settings& settings) {
  net::CurlOptions options;
  options.ca_file = settings.text("cafile", source.text).value_or("");
  options.user_agent = "playfs/" PLAYFS_VERSION;
  PLAYFS_TRY(auto transport, net::CurlTransport::create(source.origin, std::move(options)));
  return std::unique_ptr<net::Transport>(std::move(transport));
}

Status load_library(const Source& source) {
  return source.kind == Source::Kind::embedded ? Status() : net::CurlTransport::load_library();
}

Result<std::unique_ptr<ClientStack>> ClientStack::open(const Source& source, const Settings& settings,
                                                       const Places& places, const Clock& clock, Random& random) {
  auto parts = std::make_unique<Parts>(source, clock, random);
  remote::ClientOptions client;
  client.base_path = source.base_path;
  client.offline = settings.flag("offline", source.text);
  if (source.kind == Source::Kind::embedded) {
    service::ServiceOptions service;
    service.base_path = source.base_path;
    PLAYFS_TRY(parts->playground, LocalPlayground::open(source.directory, std::move(service), clock, random));
    parts->transport = std::make_unique<LocalTransport>(
        parts->playground->service(), parts->playground->store().site_id(), parts->pool, &parts->playground->feed());
  } else {
    PLAYFS_TRY(parts->transport, open_transport(source, settings));
    parts->places = places;
    parts->key_file = look_at_key_file(places);
    PLAYFS_TRY(auto login, login_at(source, places));
    if (login) client.api_key = login->api_key, client.account = login->email;
  }
  parts->client = std::make_unique<remote::Client>(*parts->transport, parts->pool, clock, random, std::move(client));
  parts->state_root = places.state;
  parts->state = places.site_state(parts->client->site());

  // The cache is optional: if it cannot be used, everything works without it, and status says so.
  if (auto made = make_private_directory(places.cache); !made) log_warning("cache: " + made.error().message);
  const CacheLimits limits = cache_limits(settings, source.text);
  cache::ObjectStoreOptions objects;
  objects.budget = limits.objects;
  objects.executor = &parts->pool;
  objects.needs_directory = false;
  objects.written_before = random.next() % (limits.objects / cache::kShareBetweenTrims + 1);
  PLAYFS_TRY(parts->objects, cache::ObjectStore::open(places.cache_objects(), objects));
  cache::RecordIndexOptions records;
  records.budget = limits.records;
  records.executor = &parts->pool;
  records.needs_directory = false;
  records.written_before = random.next() % (limits.records / cache::kShareBetweenTrims + 1);
  PLAYFS_TRY(parts->records, cache::RecordIndex::open(places.cache, records));
  parts->events = std::make_unique<content::EventLog>(clock);
  content::SiteOptions site;
  if (auto refresh = settings.seconds("refresh", source.text)) site.refresh = *refresh;
  site.prefetch = !settings.flag("noprefetch", source.text);
  parts->site = std::make_unique<content::Site>(*parts->client, *parts->objects, *parts->records, parts->pool, clock,
                                                *parts->events, site);
  if (source.may_carry_credentials()) parts->follow_key();
  return std::unique_ptr<ClientStack>(new ClientStack(std::move(parts)));
}

ClientStack::ClientStack(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ClientStack::~ClientStack() = default;

void ClientStack::start_threads() { parts_->pool.start(); }

const Source& ClientStack::source() const { return parts_->source; }
const Clock& ClientStack::clock() const { return parts_->clock; }
Random& ClientStack::random() const { return parts_->random; }
Executor& ClientStack::executor() const { return parts_->pool; }
remote::Client& ClientStack::client() const { return *parts_->client; }
content::Site& ClientStack::site() const { return *parts_->site; }
content::EventLog& ClientStack::events() const { return *parts_->events; }

Result<std::string> ClientStack::state_directory() const {
  PLAYFS_CHECK(make_private_directory_below(parts_->state_root, parts_->state));
  return parts_->state;
}

}  // namespace playfs::runtime
