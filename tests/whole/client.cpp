#include "whole/client.h"

#include <algorithm>
#include <utility>

#include "base/await.h"
#include "whole/disk.h"

namespace playfs::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Mutexes are taken far more often than requests are sent.
constexpr double kLocksToRequests = 0.01;
/// Attempts to open while the service cannot be reached or read; more than the worst network needs.
constexpr int kMostOpens = 100;

}  // namespace

class Client::Life final : public Owner, public std::enable_shared_from_this<Life> {
 public:
  explicit Life(Client& client) : client_(client) {}
  /// Called when a mutex is taken.
  void instant() override { instant(kLocksToRequests); }
  void instant(double share) {
    const Plan& plan = client_.plan_;
    if (is_dead || plan.crash <= 0 || client_.is_done_ || client_.crashes >= plan.crashes) return;
    if (client_.world_.random.chance(plan.crash * share)) client_.kill(*this);
  }
  void journal(std::string_view what) {
    instant(1);
    if (is_dead || client_.is_done_ || what != client_.plan_.killed_at || client_.world_.random.chance(0.5)) return;
    client_.plan_.killed_at.clear();
    client_.kill(*this, true);
  }
  /// Here a writer can do a merge the most harm: all input is read, and nothing is in place yet.
  void replacing() override {
    auto& world = client_.world_;
    if (is_dead || !process || !client_.process_ || !client_.plan_.writes_on || !world.random.chance(0.4)) return;
    users.begin();
    world.at(nanoseconds(0), [life = shared_from_this()] {
      User(*life->process, life->client_.ledger, life->client_.plan_.number, [life] { return !life->is_dead; }).edit();
      life->users.end(life->client_.world_);
    });
    world.sleep(milliseconds(world.random.below(20)));
  }
  void replaced() override { ++client_.ledger.merges; }
  bool sync_fails() override {
    auto& world = client_.world_;
    if (is_dead || client_.is_done() || client_.plan_.sync_errors <= 0 ||
        !world.random.chance(client_.plan_.sync_errors))
      return false;
    world.say(client_.agent_, " cannot sync");
    if (std::exchange(has_failed_sync, true)) return true;
    client_.is_ailing_ = true;
    world.at(
        milliseconds(world.random.below(10'000)),
        [life = shared_from_this()] {
          if (!life->is_dead) life->client_.kill(*life);
        },
        nullptr);
    return true;
  }
  bool is_dead = false, has_failed_sync = false;
  Process* process = nullptr;
  UseCount users;

 private:
  Client& client_;
};

Client::Client(World& world, const service::Service& service, const Weather& weather, Watcher& watcher, Plan plan,
               std::string home, std::shared_ptr<Cache> cache)
    : world_(world),
      service_(service),
      weather_(weather),
      watcher_(watcher),
      plan_(std::move(plan)),
      agent_("client" + std::to_string(plan_.number)),
      home_(std::move(home)),
      cache_(std::move(cache)) {}

Client::~Client() = default;

void Client::start() {
  make_home(directory(), plan_.forgets);
  begin();
}

void Client::begin() {
  auto life = std::make_shared<Life>(*this);
  ++processes_;
  world_.at(
      nanoseconds(0), [this, life] { live(life); }, life);
}

/// From now on nothing more is heard of it, and the next process finds what is on disk. The killed code still runs to
/// its end, in a directory that nothing reads; that is a detail of the simulation.
void Client::kill(Life& life, bool loses_power) {
  life.is_dead = true;
  world_.say(agent_, " is killed");
  ++crashes;
  const std::string before = directory();
  ++incarnation_;
  if (plan_.forgets && (life.has_failed_sync || loses_power || world_.random.chance(0.5))) {
    world_.say(agent_, " has no power");
    ++power_cuts;
    failed_disks += life.has_failed_sync;
    if (life.has_failed_sync && world_.random.chance(0.7)) plan_.sync_errors = 0;  // for a new one
    Disks::all().copy_after_power_cut(before, directory(), world_.random);
    std::erase_if(brought, [&](const auto& file) { return !ledger.is_safe(tokens_in(file.second)); });
    ledger.lose_power();
  } else {
    Disks::all().copy(before, directory());
  }
  process_ = nullptr;
  is_done_ = is_ailing_ = false;
  if (life.process) {
    life.process->sever();
    // Waiters are woken by a fiber that holds none of their locks.
    life.users.begin();
    world_.at(
        nanoseconds(0),
        [this, life = life.shared_from_this()] {
          if (life->process) life->process->interrupt();
          life->users.end(world_);
        },
        nullptr);
  }
  if (plan_.dies) has_died = true;
  else
    world_.at(
        seconds(world_.random.below(120)), [this] { begin(); }, nullptr);
  if (!plan_.keeps_cache) cache_ = Cache::open(home_ + "/cache" + std::to_string(incarnation_));
}

void Client::look_at_process(const std::function<void(Process&)>& look) {
  if (!process_) return;
  const auto life = life_;
  life->users.begin();
  look(*process_);
  life->users.end(world_);
}

void Client::live(const std::shared_ptr<Life>& life) {
  const std::string home = directory();
  auto process = std::make_unique<Process>(Process::Parts{
      .world = world_,
      .service = service_,
      .watcher = watcher_,
      .weather = weather_,
      .address = "10.0.0." + std::to_string(plan_.number + 1),
      .directory = home,
      .project = plan_.project,
      .cache = cache_,
      .agent = agent_,
      .skew = plan_.skew,
      .boot = static_cast<std::uint64_t>(power_cuts),
      .probe = [life = life.get()](std::string_view what, bool) { life->journal(what); },
      .housekeeping = {},
  });
  life->process = process.get();
  Status opened = process->open();
  for (int tries = 1; !opened && !life->is_dead && tries < kMostOpens; ++tries) {
    world_.say(agent_, " cannot open: ", opened.error().message);
    world_.sleep(seconds(5));
    opened = process->open();
  }
  if (!opened && !life->is_dead) cannot_open = opened.error().message;
  if (opened && !life->is_dead) {
    process_ = process.get();
    life_ = life;
    life->users.begin();
    if (plan_.writes_on) {
      life->users.begin();
      world_.at(nanoseconds(0), [this, life, process = process.get()] { write(*process, life); });
    }
    work(*process, life);
    life->users.end(world_);
  }
  life->users.wait(world_);
  if (!life->is_dead) {
    is_done_ = true;
    while (!is_closing_ && !life->is_dead) world_.sleep(seconds(30));
    if (!life->is_dead) process_ = nullptr;
    life->users.wait(world_);
  }
  life->process = nullptr;
  process.reset();
  if (life->is_dead) Disks::all().remove(home);
  --processes_;
}

void Client::write(Process& process, const std::shared_ptr<Life>& life) {
  User user(process, ledger, plan_.number, [life] { return !life->is_dead; });
  for (int edits = 0; edits < plan_.edits && !life->is_dead && !is_closing_ && committed_ < plan_.commits; ++edits) {
    // Busy for a moment, then thinking.
    bool thinks = world_.random.chance(plan_.is_eager ? 0.02 : 0.3);
    world_.sleep(milliseconds(world_.random.below(thinks ? 10'000 : plan_.is_eager ? 60 : 200)));
    if (life->is_dead) break;
    user.edit();
  }
  life->users.end(world_);
}

void Client::work(Process& process, const std::shared_ptr<Life>& life) {
  auto& random = world_.random;
  User user(process, ledger, plan_.number, [life] { return !life->is_dead; });
  if (random.chance(0.1)) user.keep_here();
  for (int tries = 0; committed_ < plan_.commits && tries < 12 && !life->is_dead; ++tries) {
    world_.sleep(milliseconds(random.below(4000)));
    if (life->is_dead) return;
    process.site().follow(plan_.project);
    for (auto edits = random.below(static_cast<std::uint64_t>(plan_.edits_before) + 1); edits > 0 && !life->is_dead;
         --edits)
      user.edit();
    auto what = random.below(10);
    if (random.chance(0.4) && take_in(process, user, life)) what = 10;
    if (what < 4) {
      commit(process, user, life);
    } else if (what < 8) {
      auto head = await<content::Head>(
          [&](auto done) { process.site().refresh_head(plan_.project, process.stopping(), std::move(done)); });
      if (!head || life->is_dead || head->project.latest_revision.empty()) continue;
      auto tree = await<RevisionTreePtr>([&](auto done) {
        process.site().revision(head->project.latest_revision, process.stopping(), std::move(done));
      });
      if (!tree || life->is_dead) continue;
      world_.say(agent_, " updates to ", head->project.latest_revision.text());
      auto updated = process.update(*tree);
      world_.say(agent_,
                 " updated: ", updated ? "conflicts " + std::to_string(updated->conflicts) : updated.error().message);
      if (updated && !life->is_dead) decide_later(user);
    } else if (what < 10) {
      world_.at(milliseconds(random.below(600)), [this, life] {
        if (life->is_dead || !life->process || !process_) return;
        life->users.begin();
        static_cast<void>(
            await<publish::Cancelled>([&](auto done) { life->process->publisher().cancel(std::move(done)); }));
        life->users.end(world_);
      });
      commit(process, user, life);
    }
    if (!life->is_dead && random.chance(0.5)) user.resolve();
  }
}

/// Merges a revision that head does not contain into a clean tree; the user may change their mind.
bool Client::take_in(Process& process, User& user, const std::shared_ptr<Life>& life) {
  auto left_out = process.publisher().left_out();
  if (left_out.empty()) return false;
  auto tree = await<RevisionTreePtr>(
      [&](auto done) { process.site().revision(left_out.front(), process.stopping(), std::move(done)); });
  if (!tree || life->is_dead) return false;
  user.discard_all();
  auto merged = await<publish::Integrated>(
      [&](auto done) { process.publisher().merge(*tree, process.stopping(), std::move(done)); });
  world_.say(agent_, " takes in ", left_out.front().text(), ": ",
             merged ? "conflicts " + std::to_string(merged->conflicts) : merged.error().message);
  if (!life->is_dead && world_.random.chance(0.1)) user.discard_all();
  if (merged && !life->is_dead) decide_later(user);
  return true;
}

/// The user looks at the conflicts, and may have nothing else staged for a while.
void Client::decide_later(User& user) {
  user.note_conflicts();
  if (ledger.open.empty() || world_.random.chance(0.5)) return;
  user.discard_others();
  world_.sleep(seconds(world_.random.below(60)));
}

void Client::commit(Process& process, User& user, const std::shared_ptr<Life>& life) {
  auto& random = world_.random;
  std::string name = agent_ + "-" + std::to_string(++messages_);
  std::string content = user.bring("own/" + name);
  if (!content.empty() && !life->is_dead) brought["own/" + name] = content;
  std::string victim = "victim-" + std::to_string(plan_.number);
  if (random.chance(0.5)) user.remove_for_good(victim);
  publish::CommitRequest request{.agent = agent_, .message = "message of " + name};
  begun.push_back(request.message);
  request.resolved = random.chance(0.1);
  if (request.resolved) user.decide_state();
  if (request.resolved) may_have_markers_ = true;  // files with markers may now be written to
  if (!may_have_markers_) unresolved.insert(request.message);
  const auto open = user.untouched_conflicts();
  if (request.resolved) ledger.open.clear();  // even if its outcome is never heard
  auto result = await<publish::CommitResult>(
      [&](auto done) { process.publisher().commit(request, process.stopping(), std::move(done)); });
  world_.say(agent_, " committed ", request.message, ": ",
             result ? std::to_string(static_cast<int>(result->outcome)) + " " + result->revision.text()
                    : result.error().message);
  if (life->is_dead) return;
  if (!result) {
    // The error says that it resumes at the next start, and it does.
    const bool goes_on = result.error().message.find("is not safe on this disk") != std::string::npos;
    auto queue = process.publisher().queue();
    auto is_it = [&](const publish::QueuedCommit& each) { return each.message == request.message; };
    if (goes_on && queue && std::any_of(queue->begin(), queue->end(), is_it)) return;
    told.push_back({request.message, std::nullopt, {}, world_.now()});
    return;
  }
  const bool is_posted = result->outcome != publish::Outcome::cancelled &&
                         result->outcome != publish::Outcome::nothing && result->outcome != publish::Outcome::pending;
  if (is_posted && !request.resolved) {
    const auto still_open = user.untouched_conflicts();
    for (const auto& path : open)
      if (std::find(still_open.begin(), still_open.end(), path) != still_open.end()) undecided.push_back(path);
  }
  if (is_posted) ledger.open.clear();
  if (result->outcome != publish::Outcome::pending) {
    ++committed_;
    told.push_back({request.message, result->outcome, result->revision, world_.now()});
  }
}

}  // namespace playfs::sim
