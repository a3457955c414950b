// Records of any collection, one by one: those that never change from the cache, others asked for each time.
// Thread-safe.
#pragma once

#include <string>

#include "content/context.h"
#include "content/single_flight.h"
#include "content/turns.h"

namespace playfs::content {

class Records {
 public:
  Records(Context& context, Turns& turns) : context_(context), turns_(turns) {}

  /// Where the service is away, a record that may have changed is answered as it was last seen.
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
