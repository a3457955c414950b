// Single records of any collection: immutable ones from the cache, others requested each time. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "cache/lru.h"
#include "content/context.h"
#include "content/single_flight.h"
#include "content/turns.h"

namespace playfs::content {

class Records {
 public:
  Records(Context& context, Turns& turns) : context_(context), turns_(turns) {}

  /// If the service is away, a mutable record is returned as last seen.
  void get(const std::string& collection, const std::string& id, const CancelToken& cancel, Callback<RecordPtr> done);
  /// As last seen, however long ago. Does local I/O, and parses a record of any size.
  [[nodiscard]] std::optional<Record> known(const std::string& collection, const std::string& id) const {
    return context_.stored(collection, id);
  }
  /// The same, without parsing a large record.
  [[nodiscard]] RecordAtOnce known_at_once(const std::string& collection, const std::string& id) const {
    return context_.stored_at_once(collection, id);
  }
  /// What `reduce` makes of known(), or of known_at_once(). Kept, so that a record is parsed only once.
  [[nodiscard]] RecordAtOnce known_part(const std::string& collection, const std::string& id, Reduce reduce,
                                        bool reads_large);
  void close() { flights_.close(); }

 private:
  /// Of a record whose text had this hash.
  struct Part {
    ContentHash of;
    Reduce reduce = nullptr;
    std::shared_ptr<const Record> record;
  };

  /// Continues a flight with a request.
  void ask(const std::string& collection, const std::string& id);

  static constexpr std::size_t kPartBytes = 4 << 20;

  Context& context_;
  Turns& turns_;
  SingleFlight<std::string, RecordPtr> flights_;  // by "collection/id"
  Mutex mutex_;
  cache::Lru<std::string, Part> parts_ PLAYFS_GUARDED_BY(mutex_){kPartBytes};
};

}  // namespace playfs::content
