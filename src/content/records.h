// Single records of any collection: immutable ones from the cache, others requested each time. Thread-safe.
#pragma once

#include <string>

#include "content/context.h"
#include "content/single_flight.h"
#include "content/turns.h"

namespace playfs::content {

class Records {
 public:
  Records(Context& context, Turns& turns) : context_(context), turns_(turns) {}

  /// If the service is away, a mutable record is returned as last seen.
  void get(const std::string& collection, const std::string& id, const CancelToken& cancel, Callback<Record> done);
  /// As last seen, however long ago. Does local I/O.
  [[nodiscard]] std::optional<Record> known(const std::string& collection, const std::string& id) const {
    return context_.stored(collection, id);
  }
  void close() { flights_.close(); }

 private:
  Context& context_;
  Turns& turns_;
  SingleFlight<std::string, std::shared_ptr<const Record>> flights_;  // by "collection/id"
};

}  // namespace playfs::content
