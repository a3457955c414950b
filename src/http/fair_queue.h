// What waits, by client: each client that waits has one in turn, so that who asks for much delays nobody but itself.
// Who is known to ask for little comes before who is not known, and who asks for what is dear comes last. A plain
// value, to be guarded by whoever shares it.
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

/// What clients' jobs have cost lately: one dear job counts at once, and each cheaper one after it takes an eighth of
/// the difference off, so that cheap ones in between hide nothing. Of so many clients as are seen in a while: others
/// are forgotten.
class PastCosts {
 public:
  enum class Standing { light, unknown, dear };

  [[nodiscard]] Standing of(const std::string& client) const {
    const auto* cost = find(client);
    if (!cost) return Standing::unknown;
    return *cost <= kLight ? Standing::light : Standing::dear;
  }
  /// Zero for who is not known.
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
  static constexpr std::chrono::milliseconds kLight{50};
  static constexpr std::size_t kMostClients = 2048;

  [[nodiscard]] const std::chrono::nanoseconds* find(const std::string& client) const {
    for (const Costs* costs : {&newer_, &older_})
      if (auto found = costs->find(client); found != costs->end()) return &found->second;
    return nullptr;
  }

  Costs newer_, older_;  ///< the older ones are dropped whole when there are as many newer ones
};

template <class Job>
class FairQueue {
 public:
  using Standing = PastCosts::Standing;
  struct Turn {
    std::string client;
    Job job;
  };

  /// Past `most` new jobs one gives way.
  explicit FairQueue(std::size_t most) : most_(most) {}

  /// The job that there is no room for: the newest of the client with the most new ones, which may be this one.
  [[nodiscard]] std::optional<Job> add(const std::string& client, Job job) {
    put(client, {std::move(job), true});
    ++clients_[client].fresh;
    if (++fresh_ <= most_) return std::nullopt;
    return give_way(client);
  }

  /// The rest of something that was begun: there is always room for it.
  void go_on(const std::string& client, Job job) { put(client, {std::move(job), false}); }

  /// Every fourth turn is for those who are not known, and every eighth for those who are dear: nobody waits for ever.
  std::optional<Turn> next() {
    constexpr std::array<Standing, 8> first_asked = {Standing::light,   Standing::light, Standing::light,
                                                     Standing::unknown, Standing::light, Standing::light,
                                                     Standing::light,   Standing::dear};
    if (clients_.empty()) return std::nullopt;
    if (auto turn = next(first_asked[turn_++ % first_asked.size()])) return turn;
    for (Standing standing : {Standing::light, Standing::unknown, Standing::dear})
      if (auto turn = next(standing)) return turn;
    return std::nullopt;
  }
  /// Of those alone who are known to ask for little, and of them who asks for the least: what is little on a fast
  /// machine adds up where hundreds ask for it.
  std::optional<Turn> next_light() {
    auto& line = turns(Standing::light);
    auto least = std::min_element(line.begin(), line.end(), [this](const std::string& one, const std::string& other) {
      return past_.cost(one) < past_.cost(other);
    });
    if (least == line.end()) return std::nullopt;
    return take(line, least);
  }

  void note_cost(const std::string& client, std::chrono::nanoseconds cost) { past_.note(client, cost); }

 private:
  struct Entry {
    Job job;
    bool fresh;
  };
  struct Waiting {
    std::deque<Entry> entries;  ///< never empty between two calls
    std::size_t fresh = 0;
    Standing standing = Standing::unknown;  ///< when it began to wait for this turn
  };

  std::deque<std::string>& turns(Standing standing) { return turns_[static_cast<std::size_t>(standing)]; }

  void stand_in_line(const std::string& client, Waiting& waiting) {
    // Whose turn has just been, and who asks for more, is not before those who ask for one thing at a time.
    waiting.standing = waiting.entries.empty() ? past_.of(client) : std::max(past_.of(client), Standing::unknown);
    turns(waiting.standing).push_back(client);
  }

  void put(const std::string& client, Entry entry) {
    Waiting& waiting = clients_[client];
    if (waiting.entries.empty()) stand_in_line(client, waiting);
    waiting.entries.push_back(std::move(entry));
  }

  std::optional<Turn> next(Standing standing) {
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
    if (entry.fresh) --waiting.fresh, --fresh_;
    if (waiting.entries.empty()) clients_.erase(client);
    else stand_in_line(client, waiting);
    return Turn{std::move(client), std::move(entry.job)};
  }

  Job give_way(const std::string& newcomer) {
    // Among those who have as many it is who stands last, and among equals the newcomer: nobody is pushed out by
    // somebody who is in no way better.
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
    --waiting.fresh, --fresh_;
    if (waiting.entries.empty()) {
      std::erase(turns(waiting.standing), client);
      clients_.erase(found);
    }
    return job;
  }

  const std::size_t most_;
  std::size_t fresh_ = 0;
  std::size_t turn_ = 0;
  std::unordered_map<std::string, Waiting> clients_;  ///< those with anything waiting
  std::array<std::deque<std::string>, 3> turns_;      ///< by standing; each client once, the next one first
  PastCosts past_;
};

}  // namespace playfs::http
