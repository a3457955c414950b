// A bounded least-recently-used map. Not thread-safe: guard it with its owner's mutex.
#pragma once

#include <cstddef>
#include <list>
#include <unordered_map>
#include <utility>
#include <vector>

namespace playfs::cache {

/// Each entry has a cost; above `budget` the least recently used entries are evicted. The newest one stays whatever its
/// cost, so that it can be read back.
template <class Key, class Value>
class Lru {
 public:
  explicit Lru(std::size_t budget) : budget_(budget) {}

  /// The value, marked as most recently used, or nullptr. Valid until the next change.
  Value* find(const Key& key) {
    auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->value;
  }

  /// Inserts or replaces. Returns evicted values, so that the caller can destroy them outside its lock.
  std::vector<Value> insert(const Key& key, Value value, std::size_t cost = 1) {
    std::vector<Value> evicted;
    if (auto old = take(key); !old.empty()) evicted.push_back(std::move(old.front()));
    entries_.push_front(Entry{key, std::move(value), cost});
    index_[key] = entries_.begin();
    used_ += cost;
    while (used_ > budget_ && entries_.size() > 1) evicted.push_back(std::move(take(entries_.back().key).front()));
    return evicted;
  }

  /// Removes a key and returns its value, if any.
  std::vector<Value> take(const Key& key) {
    std::vector<Value> taken;
    auto found = index_.find(key);
    if (found == index_.end()) return taken;
    auto entry = found->second;
    index_.erase(found);
    used_ -= entry->cost;
    taken.push_back(std::move(entry->value));
    entries_.erase(entry);
    return taken;
  }

  std::vector<Value> take_all() {
    std::vector<Value> taken;
    for (auto& entry : entries_) taken.push_back(std::move(entry.value));
    entries_.clear();
    index_.clear();
    used_ = 0;
    return taken;
  }

  /// Visits keys and values, which stays without effect on their order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Entry& entry : entries_) visit(entry.key, entry.value);
  }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Key key;
    Value value;
    std::size_t cost;
  };
  std::size_t budget_;
  std::size_t used_ = 0;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<Key, typename std::list<Entry>::iterator> index_;
};

}  // namespace playfs::cache
