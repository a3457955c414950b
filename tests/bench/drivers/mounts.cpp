// Many mounts of one service in one process, without a kernel: some commit to a project, the others watch.
//
//   bench-mounts URL DIRECTORY together|in-turn COMMITTING COMMITS WATCHING LISTENING
//
// COMMITTING mounts make COMMITS commits each, at the same time or one after the other. WATCHING ones show the
// project's head; LISTENING ones show something else of the service. The service must take 127.0.0.1 for a proxy
// (--proxy), since each mount has an address of its own. Prints what was requested, as JSON; exits with 1 unless all
// end with the same head, which has what everybody committed.
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/await.h"
#include "net/curl_transport.h"
#include "simulated_mount.h"
#include "wire/json.h"
#include "wire/records.h"

namespace {

using namespace playfs;
using bench::RequestCounts;
using bench::SimulatedMount;
using std::chrono::steady_clock;

constexpr unsigned kThreads = 8;
constexpr std::chrono::seconds kIdle{3};
constexpr std::chrono::minutes kLongest{5};

struct Failure {
  std::string why;
};

template <class T>
T take(Result<T> result, const std::string& what) {
  if (!result) throw Failure{what + ": " + result.error().message};
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

double seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

void wait_until(const std::function<bool()>& holds, const std::string& what) {
  const auto end = steady_clock::now() + kLongest;
  while (!holds()) {
    if (steady_clock::now() > end) throw Failure{"in vain waited until " + what};
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

/// Runs `work` for each number up to `count`, on threads of their own; throws the first failure.
void together(int count, int threads, const std::function<void(int)>& work) {
  std::atomic<int> next = 0;
  std::vector<std::string> failures(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  for (auto& failure : failures)
    running.emplace_back([&] {
      try {
        for (int number = next++; number < count; number = next++) work(number);
      } catch (const Failure& caught) {
        failure = caught.why;
      }
    });
  for (auto& thread : running) thread.join();
  for (const auto& failure : failures)
    if (!failure.empty()) throw Failure{failure};
}

/// A client that is not counted, for preparing and for looking at the result.
class Site {
 public:
  Site(const std::string& url, Executor& executor, const Clock& clock, Random& random) : random_(random) {
    transport_ = take(net::CurlTransport::create(url, {}), url);
    client_ = std::make_unique<remote::Client>(*transport_, executor, clock, random, remote::ClientOptions());
  }
  /// A project with one revision.
  ProjectId make_project() {
    const ProjectId project(create("projects", {{"name", "many mounts"}}).id);
    const JsonObject files{{"README", JsonObject{{"inline", "hello\n"}}}};
    const Record first = create("revisions", {{"project", project.text()},
                                              {"parents", Json::Array()},
                                              {"agent", "bench"},
                                              {"message", "begin"},
                                              {"manifest", JsonObject{{"files", files}}}});
    take(await<Record>([&](auto done) {
           client_->patch_record("projects", project.text(), JsonObject{{"latest_revision", first.id}}, {},
                                 std::move(done));
         }),
         "PATCH");
    return project;
  }
  RevisionId head(const ProjectId& project) {
    auto fetched = take(
        await<remote::Fetched<Project>>([&](auto done) { client_->get_project(project, {}, {}, std::move(done)); }),
        "GET");
    return fetched.value->latest_revision;
  }

 private:
  Record create(const std::string& collection, JsonObject body) {
    return take(await<Record>([&](auto done) {
                  client_->create_record(collection, std::move(body), random_.uuid(), {}, std::move(done));
                }),
                "POST " + collection);
  }
  Random& random_;
  std::unique_ptr<net::CurlTransport> transport_;
  std::unique_ptr<remote::Client> client_;
};

struct Plan {
  std::string url, directory;
  bool in_turn = false;
  int committing = 0, commits = 0, watching = 0, listening = 0;
  [[nodiscard]] int mounts() const { return committing + watching + listening; }
};

class Run {
 public:
  explicit Run(Plan plan) : plan_(std::move(plan)), site_(plan_.url, executor_, clock_, random_) {}
  ~Run() {
    mounts_.clear();
    executor_.stop();
  }

  JsonObject measure() {
    project_ = site_.make_project();
    open();
    const auto before = idle();
    JsonObject result{{"mounts", plan_.mounts()}, {"idle_requests", total() - before}, {"idle_seconds", kIdle.count()}};
    const auto counts = taken();
    std::cout << "ready" << std::endl;
    commit();
    result.append("commits", plan_.committing * plan_.commits);
    result.append("seconds", seconds_since(begin_));
    const auto ended = steady_clock::now();
    const RevisionId head = converge();
    result.append("converged_after", seconds_since(ended));
    idle();
    check(head);
    result.append("outcomes", outcomes());
    const auto now = taken();
    for (std::size_t role = 0; role < now.size(); ++role)
      result.append(kRoles[role], difference(counts[role], now[role]));
    return result;
  }

 private:
  using Counts = std::map<std::string, std::uint64_t>;
  static constexpr std::array kRoles = {"committing", "watching", "listening"};

  [[nodiscard]] std::size_t role_of(int number) const {
    return number < plan_.committing ? 0 : number < plan_.committing + plan_.watching ? 1 : 2;
  }
  [[nodiscard]] std::string path(const std::string& below) const { return "projects/" + project_.text() + "/" + below; }
  static std::string agent(int number) { return "agent-" + std::to_string(number); }
  /// What it wrote last.
  [[nodiscard]] std::string text(int commit) const { return "commit " + std::to_string(commit) + "\n"; }

  void open() {
    mounts_.resize(static_cast<std::size_t>(plan_.mounts()));
    together(plan_.mounts(), kThreads, [&](int number) {
      auto& mount = mounts_[static_cast<std::size_t>(number)];
      const SimulatedMount::Place place{plan_.url, plan_.directory + "/" + agent(number),
                                        fmt::format("10.1.{}.{}", number / 250, number % 250 + 1), agent(number)};
      const std::size_t role = role_of(number);
      mount = take(SimulatedMount::open(place, counts_[role], clock_, random_, executor_), agent(number));
      take(role == 2 ? mount->list("agents") : mount->look_at(path(role == 0 ? "work/README" : "head/README")),
           agent(number));
    });
    wait_until([&] { return std::all_of(mounts_.begin(), mounts_.end(), [](auto& each) { return each->is_told(); }); },
               "all mounts are told of changes");
  }

  /// Waits until no requests have been sent for a while; returns the number of requests when that pause began.
  std::uint64_t idle() {
    std::uint64_t before = 0;
    wait_until(
        [&] {
          const auto last = std::exchange(before, total());
          std::this_thread::sleep_for(std::chrono::seconds(1));
          return last == total();
        },
        "nothing is requested");
    std::this_thread::sleep_for(kIdle);
    return before;
  }

  void commit() {
    begin_ = steady_clock::now();
    const auto all = [&](int number) {
      for (int i = 1; i <= plan_.commits; ++i) commit(number, i);
    };
    if (!plan_.in_turn) return together(plan_.committing, std::max(plan_.committing, 1), all);
    for (int number = 0; number < plan_.committing; ++number) all(number);
  }

  void commit(int number, int turn) {
    auto& mount = *mounts_[static_cast<std::size_t>(number)];
    take(mount.write(path("work/" + agent(number)), text(turn)), agent(number));
    const auto done = take(mount.commit(path("work"), text(turn)), agent(number));
    MutexLock lock(mutex_);
    ++outcomes_[done.outcome == publish::Outcome::published ? "published"
                : done.outcome == publish::Outcome::merged  ? "merged"
                                                            : "other"];
  }

  RevisionId converge() {
    RevisionId head;
    wait_until(
        [&] {
          head = site_.head(project_);
          const auto looking = static_cast<std::ptrdiff_t>(plan_.committing + plan_.watching);
          return std::all_of(mounts_.begin(), mounts_.begin() + looking,
                             [&](const auto& mount) { return mount->shown(project_) == head; }) &&
                 head == site_.head(project_);
        },
        "all mounts show the service's head");
    return head;
  }

  void check(const RevisionId& head) {
    for (int number = 0; number < plan_.committing + plan_.watching; ++number) {
      auto& mount = *mounts_[static_cast<std::size_t>(number)];
      if (mount.shown(project_) != head) throw Failure{agent(number) + " shows another head in the end"};
      for (int author = 0; author < plan_.committing; ++author)
        if (take(mount.read(path("head/" + agent(author))), agent(number)) != text(plan_.commits))
          throw Failure{agent(number) + " has not what " + agent(author) + " committed last"};
    }
  }

  JsonObject outcomes() {
    MutexLock lock(mutex_);
    JsonObject counts;
    for (const auto& [outcome, count] : outcomes_) counts.append(outcome, count);
    return counts;
  }
  [[nodiscard]] std::array<Counts, 3> taken() const {
    return {counts_[0].take(), counts_[1].take(), counts_[2].take()};
  }
  [[nodiscard]] std::uint64_t total() const { return counts_[0].total() + counts_[1].total() + counts_[2].total(); }
  static JsonObject difference(const Counts& before, const Counts& after) {
    JsonObject counts;
    for (const auto& [kind, count] : after) {
      const auto found = before.find(kind);
      const auto since = count - (found == before.end() ? 0 : found->second);
      if (since > 0) counts.append(kind, since);
    }
    return counts;
  }

  const Plan plan_;
  SystemClock clock_;
  SystemRandom random_;
  ThreadPool executor_{kThreads};
  Site site_;
  ProjectId project_;
  std::array<RequestCounts, 3> counts_;
  std::vector<std::unique_ptr<SimulatedMount>> mounts_;
  steady_clock::time_point begin_;
  Mutex mutex_;
  std::map<std::string, int> outcomes_ PLAYFS_GUARDED_BY(mutex_);
};

void raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 3 ? argv[3] : "";
  if (argc != 8 || (how != "together" && how != "in-turn")) {
    std::cerr << "usage: bench-mounts URL DIRECTORY together|in-turn COMMITTING COMMITS WATCHING LISTENING\n";
    return 2;
  }
  raise_descriptor_limit();
  try {
    Run run({argv[1], argv[2], how == "in-turn", std::atoi(argv[4]), std::atoi(argv[5]), std::atoi(argv[6]),
             std::atoi(argv[7])});
    std::cout << wire::to_text(Json(run.measure())) << std::endl;
  } catch (const Failure& failure) {
    std::cerr << "bench-mounts: " << failure.why << "\n";
    return 1;
  }
  return 0;
}
