// How much memory answers hold until their clients have read them, by client. A plain value, for one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>

namespace playfs::http {

class QueuedBytes {
 public:
  QueuedBytes(std::size_t most, std::size_t share) : most_(most), share_(share) {}

  /// Whether a client may hold that many more, as far as the others leave room. One answer it may always have.
  [[nodiscard]] bool within_share(const std::string& client, std::size_t bytes) const {
    const std::size_t held = of(client);
    return held == 0 || held + bytes <= share_;
  }
  [[nodiscard]] bool has_room(std::size_t bytes) const { return total_ == 0 || total_ + bytes <= most_; }

  void add(const std::string& client, std::size_t bytes) {
    if (bytes == 0) return;
    clients_[client] += bytes;
    total_ += bytes;
  }
  /// REQUIRES: they were added.
  void remove(const std::string& client, std::size_t bytes) {
    if (bytes == 0) return;
    auto found = clients_.find(client);
    if ((found->second -= bytes) == 0) clients_.erase(found);
    total_ -= bytes;
  }

  [[nodiscard]] std::size_t of(const std::string& client) const {
    auto found = clients_.find(client);
    return found == clients_.end() ? 0 : found->second;
  }
  /// The client that holds the most; empty: nobody holds anything.
  [[nodiscard]] std::string greediest() const {
    auto found = std::max_element(clients_.begin(), clients_.end(),
                                  [](const auto& one, const auto& other) { return one.second < other.second; });
    return found == clients_.end() ? std::string() : found->first;
  }

 private:
  const std::size_t most_;
  const std::size_t share_;
  std::size_t total_ = 0;
  std::unordered_map<std::string, std::size_t> clients_;
};

}  // namespace playfs::http
