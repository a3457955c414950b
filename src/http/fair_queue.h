// What waits, by client: each client that waits has one in turn, so that who asks for much delays nobody but itself.
// A plain value, to be guarded by whoever shares it.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace playfs::http {

template <class Job>
class FairQueue {
 public:
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

  std::optional<Job> next() {
    if (turns_.empty()) return std::nullopt;
    const std::string client = std::move(turns_.front());
    turns_.pop_front();
    Waiting& waiting = clients_[client];
    Entry entry = std::move(waiting.entries.front());
    waiting.entries.pop_front();
    if (entry.fresh) --waiting.fresh, --fresh_;
    if (waiting.entries.empty()) clients_.erase(client);
    else turns_.push_back(client);
    return std::move(entry.job);
  }

 private:
  struct Entry {
    Job job;
    bool fresh;
  };
  struct Waiting {
    std::deque<Entry> entries;  ///< never empty between two calls
    std::size_t fresh = 0;
  };

  void put(const std::string& client, Entry entry) {
    Waiting& waiting = clients_[client];
    if (waiting.entries.empty()) turns_.push_back(client);
    waiting.entries.push_back(std::move(entry));
  }

  Job give_way(const std::string& newcomer) {
    // Among equals it is the newcomer: nobody is pushed out by somebody who has as much.
    auto longest = clients_.find(newcomer);
    for (auto each = clients_.begin(); each != clients_.end(); ++each)
      if (each->second.fresh > longest->second.fresh) longest = each;
    auto& [client, waiting] = *longest;
    auto last = waiting.entries.end() - 1;
    while (!last->fresh) --last;
    Job job = std::move(last->job);
    waiting.entries.erase(last);
    --waiting.fresh, --fresh_;
    if (waiting.entries.empty()) {
      std::erase(turns_, client);
      clients_.erase(longest);
    }
    return job;
  }

  const std::size_t most_;
  std::size_t fresh_ = 0;
  std::unordered_map<std::string, Waiting> clients_;  ///< those with anything waiting
  std::deque<std::string> turns_;                     ///< each of them once, the next one first
};

}  // namespace playfs::http
