// A queue in which waiting clients take turns, one job each, so that a client with many jobs delays only itself.
// Clients with cheap recent jobs (light) come before unknown ones, those with expensive jobs (dear) last. A plain
// value; the owner synchronizes access.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace playfs::http {

/// The recent cost of clients' jobs. One expensive job counts at once, and each cheaper one after it takes off an
/// eighth of the difference, so that cheap jobs in between hide nothing. Remembers a bounded number of clients and
/// forgets those not seen for long.
class PastCosts {
 public:
  enum class CostClass { light, unknown, dear };

  /// A client is light up to a cost of `light`.
  explicit PastCosts(std::chrono::nanoseconds light) : light_(light) {}

  [[nodiscard]] CostClass of(const std::string& client) const {
    const auto* cost = find(client);
    if (!cost) return CostClass::unknown;
    return *cost <= light_ ? CostClass::light : CostClass::dear;
  }
  /// Zero for an unknown client.
  [[nodiscard]] std::chrono::nanoseconds cost(const std::string& client) const {
    const auto* cost = find(client);
    return cost ? *cost : std::chrono::nanoseconds(0);
  }
  void note(const std::string& client, std::chrono::nanoseconds cost) {
    const auto* before = find(client);
    const auto now = before ? std::max(cost, *before - (*before - cost) / 8) : cost;
    if (newer_.size() >= kMostClients) older_ = std::exchange(newer_, {});
    newer_[client] = now;
  }

 private:
  using Costs = std::unordered_map<std::string, std::chrono::nanoseconds>;
  static constexpr std::size_t kMostClients = 2048;

  [[nodiscard]] const std::chrono::nanoseconds* find(const std::string& client) const {
    for (const Costs* costs : {&newer_, &older_})
      if (auto found = costs->find(client); found != costs->end()) return &found->second;
    return nullptr;
  }

  const std::chrono::nanoseconds light_;
  Costs newer_, older_;  ///< a full newer_ replaces older_, which is dropped whole
};

template <class Job>
class FairQueue {
 public:
  using CostClass = PastCosts::CostClass;
  struct Turn {
    std::string client;
    Job job;
  };

  /// Past `most` new jobs, one is refused. Clients whose recent jobs cost up to `light` are light.
  explicit FairQueue(std::size_t most, std::chrono::nanoseconds light = std::chrono::milliseconds(50))
      : most_(most), past_(light) {}

  /// Returns the job to refuse if the queue is full: the newest of the client with the most, possibly this one.
  [[nodiscard]] std::optional<Job> add(const std::string& client, Job job) {
    put(client, {std::move(job), true});
    ++clients_[client].fresh;
    if (++fresh_ <= most_) return std::nullopt;
    return give_way(client);
  }

  /// Queues the rest of a started job: it always fits.
  void go_on(const std::string& client, Job job) { put(client, {std::move(job), false}); }

  /// Of every eight turns, the fourth prefers an unknown client, the eighth a dear one, so that nobody starves.
  std::optional<Turn> next() {
    constexpr std::array<CostClass, 8> first_asked = {CostClass::light,   CostClass::light, CostClass::light,
                                                      CostClass::unknown, CostClass::light, CostClass::light,
                                                      CostClass::light,   CostClass::dear};
    if (clients_.empty()) return std::nullopt;
    if (auto turn = next(first_asked[turn_++ % first_asked.size()])) return turn;
    for (CostClass standing : {CostClass::light, CostClass::unknown, CostClass::dear})
      if (auto turn = next(standing)) return turn;
    return std::nullopt;
  }
  /// Serves light clients only, the lightest first: cheap jobs add up when hundreds of clients send them.
  std::optional<Turn> next_light() {
    auto& line = turns(CostClass::light);
    auto least = std::min_element(line.begin(), line.end(), [this](const std::string& one, const std::string& other) {
      return past_.cost(one) < past_.cost(other);
    });
    if (least == line.end()) return std::nullopt;
    return take(line, least);
  }

  /// Jobs that wait.
  [[nodiscard]] std::size_t size() const { return size_; }

  void note_cost(const std::string& client, std::chrono::nanoseconds cost) { past_.note(client, cost); }

 private:
  struct Entry {
    Job job;
    bool fresh;
  };
  struct Waiting {
    std::deque<Entry> entries;  ///< never empty between two calls
    std::size_t fresh = 0;
    CostClass standing = CostClass::unknown;  ///< when it began to wait for this turn
  };

  std::deque<std::string>& turns(CostClass standing) { return turns_[static_cast<std::size_t>(standing)]; }

  void stand_in_line(const std::string& client, Waiting& waiting) {
    // A client that just had a turn and has more jobs does not go before those that send one at a time.
    waiting.standing = waiting.entries.empty() ? past_.of(client) : std::max(past_.of(client), CostClass::unknown);
    turns(waiting.standing).push_back(client);
  }

  void put(const std::string& client, Entry entry) {
    Waiting& waiting = clients_[client];
    if (waiting.entries.empty()) stand_in_line(client, waiting);
    waiting.entries.push_back(std::move(entry));
    ++size_;
  }

  std::optional<Turn> next(CostClass standing) {
    auto& line = turns(standing);
    if (line.empty()) return std::nullopt;
    return take(line, line.begin());
  }

  Turn take(std::deque<std::string>& line, std::deque<std::string>::iterator place) {
    std::string client = std::move(*place);
    line.erase(place);
    Waiting& waiting = clients_[client];
    Entry entry = std::move(waiting.entries.front());
    waiting.entries.pop_front();
    --size_;
    if (entry.fresh) --waiting.fresh, --fresh_;
    if (waiting.entries.empty()) clients_.erase(client);
    else stand_in_line(client, waiting);
    return Turn{std::move(client), std::move(entry.job)};
  }

  Job give_way(const std::string& newcomer) {
    // Among clients with equally many, the last in standing is refused, and among equals the newcomer: no waiting job
    // is displaced by a client that is no better.
    auto gives_way_before = [](const Waiting& one, const Waiting& other) {
      return std::pair(one.fresh, one.standing) > std::pair(other.fresh, other.standing);
    };
    auto found = clients_.find(newcomer);
    for (auto each = clients_.begin(); each != clients_.end(); ++each)
      if (gives_way_before(each->second, found->second)) found = each;
    auto& [client, waiting] = *found;
    auto last = waiting.entries.end() - 1;
    while (!last->fresh) --last;
    Job job = std::move(last->job);
    waiting.entries.erase(last);
    --waiting.fresh, --fresh_, --size_;
    if (waiting.entries.empty()) {
      std::erase(turns(waiting.standing), client);
      clients_.erase(found);
    }
    return job;
  }

  const std::size_t most_;
  std::size_t size_ = 0;
  std::size_t fresh_ = 0;  ///< of these, the new ones
  std::size_t turn_ = 0;
  std::unordered_map<std::string, Waiting> clients_;  ///< those with waiting jobs
  std::array<std::deque<std::string>, 3> turns_;      ///< by standing; each client once, in order of turns
  PastCosts past_;
};

}  // namespace playfs::http
