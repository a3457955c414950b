// How much memory connections hold, by client: unfinished requests, those that wait for their answers, and answers until
// their clients have read them. Says who has to go where it ends. A plain value, for one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

namespace playfs::http {

/// A Holder is a connection, known by its address alone.
template <class Holder>
class HeldBytes {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// Who has not sent or taken so many bytes for so long is the first to go.
  static constexpr std::chrono::seconds kPatience{1};
  static constexpr std::size_t kStep = 4 * 1024;

  struct Verdict {
    bool fits = false;
    Holder* in_the_way = nullptr;  ///< who has to go for it; none: there is no room for this one
  };

  HeldBytes(std::size_t most, std::size_t share) : most_(most), share_(share) {}

  /// Whether a holder may hold so many bytes for a client, in place of what it holds. Past a client's share only its own
  /// connections give way, and only those that do not move; past what all may hold, any that does not move for longest,
  /// and then the client's that holds the most, where that is more than twice what this one comes to.
  [[nodiscard]] Verdict room_for(const Holder* holder, const std::string& client, std::size_t bytes, Time now) const {
    const auto part = parts_.find(holder);
    const std::size_t own = part == parts_.end() ? 0 : part->second.bytes;
    const auto known = clients_.find(client);
    const std::size_t others = known == clients_.end() ? 0 : known->second.bytes - own;
    const Time stalled = now - kPatience;
    if (bytes <= own) return {true};
    if (others > 0 && others + bytes > share_) {
      const Part* first = first_to_go(known->second, holder);
      return {false, first && first->moved <= stalled ? first->holder : nullptr};
    }
    if (total_ == own || total_ - own + bytes <= most_) return {true};

    const Part *oldest = nullptr, *of_greediest = nullptr;
    std::size_t greed = 2 * (others + bytes);
    for (const auto& [name, theirs] : clients_) {
      const Part* first = first_to_go(theirs, holder);
      if (!first) continue;
      if (!oldest || first->moved < oldest->moved) oldest = first;
      if (name != client && theirs.bytes > greed) of_greediest = first, greed = theirs.bytes;
    }
    if (oldest && oldest->moved <= stalled) return {false, oldest->holder};
    return {false, of_greediest ? of_greediest->holder : nullptr};
  }

  /// From now on it holds so many, in place of what it held. `can_go`: it gives them back when it is told to.
  /// REQUIRES: for the client that it holds the others for.
  void hold(Holder* holder, const std::string& client, std::size_t bytes, bool can_go, Time now) {
    if (bytes == 0) return release(holder);
    auto found = parts_.find(holder);
    if (found != parts_.end() && (!can_go || !found->second.place)) {
      release(holder);
      found = parts_.end();
    }
    if (found == parts_.end()) {
      found = parts_.emplace(holder, Part{holder, client, 0, now, 0, std::nullopt}).first;
      auto& line = clients_[client].can_go;
      if (can_go) found->second.place = line.insert(line.end(), &found->second);
    }
    Part& part = found->second;
    clients_[client].bytes += bytes - part.bytes;
    total_ += bytes - part.bytes;
    part.bytes = bytes;
  }
  /// So many bytes were sent or taken.
  void moved(Holder* holder, std::size_t bytes, Time now) {
    auto found = parts_.find(holder);
    if (found == parts_.end()) return;
    Part& part = found->second;
    part.step += bytes;
    if (part.step < kStep || !part.place) return;
    part.step = 0;
    part.moved = now;
    auto& line = clients_.find(part.client)->second.can_go;
    line.splice(line.end(), line, *part.place);
  }
  void release(Holder* holder) {
    auto found = parts_.find(holder);
    if (found == parts_.end()) return;
    const Part& part = found->second;
    auto of_client = clients_.find(part.client);
    if (part.place) of_client->second.can_go.erase(*part.place);
    total_ -= part.bytes;
    if ((of_client->second.bytes -= part.bytes) == 0) clients_.erase(of_client);
    parts_.erase(found);
  }

  [[nodiscard]] std::size_t total() const { return total_; }

 private:
  struct Part {
    Holder* holder;
    std::string client;
    std::size_t bytes;
    Time moved;
    std::size_t step;  ///< bytes since then
    std::optional<typename std::list<Part*>::iterator> place;  ///< among those that can go
  };
  struct Client {
    std::size_t bytes = 0;
    std::list<Part*> can_go;  ///< the one first that moved longest ago
  };

  /// But for the one that asks.
  static const Part* first_to_go(const Client& client, const Holder* asking) {
    auto first = std::find_if(client.can_go.begin(), client.can_go.end(),
                              [&](const Part* part) { return part->holder != asking; });
    return first == client.can_go.end() ? nullptr : *first;
  }

  const std::size_t most_;
  const std::size_t share_;
  std::size_t total_ = 0;
  std::unordered_map<const Holder*, Part> parts_;
  std::unordered_map<std::string, Client> clients_;
};

}  // namespace playfs::http
