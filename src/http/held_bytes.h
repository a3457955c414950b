// Accounts for the memory that connections hold, by client: unfinished requests, requests waiting for their answers,
// and answers until their clients have read them. Chooses whom to close when memory runs out. For one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

namespace playfs::http {

/// A Holder is a connection, identified by its address alone.
template <class Holder>
class HeldBytes {
 public:
  /// The bytes sent or received that count as progress: a byte now and then does not keep a connection alive.
  static constexpr std::size_t kStep = 4 * 1024;

  struct Verdict {
    bool fits = false;
    Holder* in_the_way = nullptr;  ///< the holder to close to make room; none: this one does not fit
  };

  HeldBytes(std::size_t most, std::size_t share) : most_(most), share_(share) {}

  /// Whether a holder may hold `bytes` for a client instead of what it holds now. A client is limited to its share, but
  /// may always hold one thing. Past the total, the holder whose last progress is oldest must go: hardly an active
  /// reader.
  [[nodiscard]] Verdict room_for(const Holder* holder, const std::string& client, std::size_t bytes) const {
    const auto part = parts_.find(holder);
    const std::size_t own = part == parts_.end() ? 0 : part->second.bytes;
    const auto known = clients_.find(client);
    const std::size_t others = known == clients_.end() ? 0 : known->second - own;
    if (bytes <= own) return {true};
    if (others > 0 && others + bytes > share_) return {};
    if (total_ == own || total_ - own + bytes <= most_) return {true};
    auto first = can_go_.begin();
    if (first != can_go_.end() && *first == holder) ++first;
    return {false, first == can_go_.end() ? nullptr : *first};
  }

  /// Sets what `holder` holds. `can_go`: it can be closed to free memory.
  /// REQUIRES: the same client as for what it holds now.
  void hold(Holder* holder, const std::string& client, std::size_t bytes, bool can_go) {
    if (bytes == 0) return release(holder);
    auto found = parts_.find(holder);
    if (found != parts_.end() && (!can_go || !found->second.place)) {
      release(holder);
      found = parts_.end();
    }
    if (found == parts_.end()) {
      found = parts_.emplace(holder, Part{client, 0, 0, std::nullopt}).first;
      if (can_go) found->second.place = can_go_.insert(can_go_.end(), holder);
    }
    Part& part = found->second;
    clients_[client] += bytes - part.bytes;
    total_ += bytes - part.bytes;
    part.bytes = bytes;
  }
  /// Notes that `bytes` were sent or received.
  void moved(Holder* holder, std::size_t bytes) {
    auto found = parts_.find(holder);
    if (found == parts_.end()) return;
    Part& part = found->second;
    part.step += bytes;
    if (part.step >= kStep) made_progress(part);
  }
  /// Counts as progress that `holder` could send or receive now, and only waits for its turn.
  void spare(Holder* holder) {
    auto found = parts_.find(holder);
    if (found != parts_.end()) made_progress(found->second);
  }
  [[nodiscard]] std::size_t total() const { return total_; }  ///< also on other threads
  void release(Holder* holder) {
    auto found = parts_.find(holder);
    if (found == parts_.end()) return;
    const Part& part = found->second;
    if (part.place) can_go_.erase(*part.place);
    total_ -= part.bytes;
    auto of_client = clients_.find(part.client);
    if ((of_client->second -= part.bytes) == 0) clients_.erase(of_client);
    parts_.erase(found);
  }

 private:
  struct Part {
    std::string client;
    std::size_t bytes;
    std::size_t step;                                            ///< bytes since its last progress
    std::optional<typename std::list<Holder*>::iterator> place;  ///< in can_go_
  };

  void made_progress(Part& part) {
    part.step = 0;
    if (part.place) can_go_.splice(can_go_.end(), can_go_, *part.place);
  }

  const std::size_t most_;
  const std::size_t share_;
  std::atomic<std::size_t> total_ = 0;
  std::unordered_map<const Holder*, Part> parts_;
  std::unordered_map<std::string, std::size_t> clients_;
  std::list<Holder*> can_go_;  ///< oldest progress first
};

}  // namespace playfs::http
