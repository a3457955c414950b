// Single records of any collection: immutable ones from the cache, others requested each time. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "cache/lru.h"
#include "content/single_flight.h"
#include "content/site_context.h"
#include "content/turns.h"

namespace playfs::content {

class Records {
 public:
  Records(SiteContext& context, Turns& turns) : context_(context), turns_(turns) {}

  /// If the service is away, a mutable record is returned as last seen.
  void get(const std::string& collection, const std::string& id, const CancelToken& cancel,
           Callback<RecordTextPtr> done);
  /// As last seen, however long ago. Does local I/O, and parses a record of any size.
  [[nodiscard]] std::optional<Record> known(const std::string& collection, const std::string& id) const {
    return context_.stored(collection, id);
  }
  /// What `reduce` returns for the record. Cached, so that a record is parsed only once. Nothing if it is unreadable.
  [[nodiscard]] PartAtOnce part_of(const RecordText& text, Reduce reduce, Reads reads);
  /// The same of the record as last seen.
  [[nodiscard]] PartAtOnce known_part(const std::string& collection, const std::string& id, Reduce reduce, Reads reads);
  /// nullopt if the text is no longer here.
  [[nodiscard]] std::optional<std::string> read(const Text& text, std::uint64_t offset, std::size_t size);
  /// Whether the record as last seen is current because an event would have reported any change.
  [[nodiscard]] bool is_told(const std::string& collection, const std::string& id);
  /// An event said that the record has changed.
  void heard(const std::string& collection, const std::string& id);
  void close() { flights_.close(); }

 private:
  struct Kept {
    ContentHash of;  ///< the record's JSON
    bool is_large = false;
    RecordPartPtr part;
  };

  /// A request for a record.
  struct Asked {
    std::uint64_t period = 0;  ///< of Live
    SteadyTime at;
    bool is_outdated = false;  ///< the record has changed since
    int times = 1;
  };
  /// The request of a record that no event has named since.
  struct Told {
    std::uint64_t period = 0;
    SteadyTime asked_at;
  };

  void ask(const std::string& collection, const std::string& id);
  /// Whether a change overtook the response, so that the record should be requested again.
  [[nodiscard]] bool was_overtaken(const std::string& key, bool is_answer) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::optional<Kept> kept(const std::string& key) PLAYFS_EXCLUDES(mutex_);
  /// Whether the part's text can be read.
  [[nodiscard]] bool is_whole(const RecordPart& part) const;
  [[nodiscard]] Text keep(std::string text) const;

  static constexpr std::size_t kPartBytes = 4 << 20;
  static constexpr std::size_t kMostTold = 50'000;  ///< records
  static constexpr int kMostAsked = 3;              ///< times in a row, for a record that keeps changing

  SiteContext& context_;
  Turns& turns_;
  SingleFlight<std::string, RecordTextPtr> flights_;  // by "collection/id"
  Mutex mutex_;
  cache::Lru<std::string, Kept> parts_ PLAYFS_GUARDED_BY(mutex_){kPartBytes};
  std::map<std::string, Asked> asked_ PLAYFS_GUARDED_BY(mutex_);
  cache::Lru<std::string, Told> told_ PLAYFS_GUARDED_BY(mutex_){kMostTold};
};

}  // namespace playfs::content
