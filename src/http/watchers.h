// Counts the connections that get answers without an end, in all and by client. For one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <unordered_map>

namespace playfs::http {

class Watchers {
 public:
  Watchers(std::size_t most, std::size_t share) : most_(most), share_(share) {}

  /// Takes a place for one more connection; false if there is none.
  [[nodiscard]] bool enter(const std::string& client) {
    if (all_ >= most_) return false;
    const auto known = of_client_.find(client);
    if (known != of_client_.end() ? known->second >= share_ : share_ == 0) return false;
    ++of_client_[client];
    ++all_;
    return true;
  }
  /// REQUIRES: the client entered, and has not left.
  void leave(const std::string& client) {
    --all_;
    auto known = of_client_.find(client);
    if (--known->second == 0) of_client_.erase(known);
  }

  [[nodiscard]] std::size_t all() const { return all_; }  ///< also on other threads

 private:
  const std::size_t most_;
  const std::size_t share_;
  std::atomic<std::size_t> all_ = 0;
  std::unordered_map<std::string, std::size_t> of_client_;
};

}  // namespace playfs::http
