// What the parts of one Site share: where to ask, where to keep, whom to tell. One instance a Site; thread-safe.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/callback.h"
#include "base/cancel.h"
#include "base/executor.h"
#include "cache/object_store.h"
#include "cache/record_index.h"
#include "content/event_log.h"
#include "content/gate.h"
#include "content/outage.h"
#include "content/patience.h"
#include "content/types.h"
#include "remote/client.h"

namespace playfs::content {

/// How much one of several that share something may have, where `all` of them have so much already and it has `own`:
/// half of what the others leave of twice the `width`, and always something. Alone it may have the whole width.
inline std::size_t share_of(std::size_t width, std::size_t own, std::size_t all) {
  const std::size_t others = std::min(all - own, 2 * width);
  return std::max<std::size_t>((2 * width - others) / 2, 1);
}

struct Context {
  remote::Client& client;
  cache::ObjectStore& objects;
  cache::RecordIndex& records;
  Executor& executor;
  const Clock& clock;
  EventLog& events;
  const SiteOptions options;
  const std::string site;
  OutageWatch outage;
  Patience patience{clock};
  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  CancelSource stop{};  ///< ends the requests under way when the Site goes

  /// How many chunk requests may be under way at once.
  [[nodiscard]] std::size_t parallel_chunks() const { return std::min(options.parallel_chunks, client.width()); }

  template <class F>
  auto guarded(F f) {
    return Gate::guard(gate, std::move(f));
  }

  /// After each request: how it ended; nullptr for an answer.
  void saw(const Error* error);

  /// A callback for the client: tells who watches the service, then runs `f` on the executor. The client's own threads
  /// carry everybody's answers and must not wait for a disk.
  template <class T, class F>
  Callback<T> answered(F f) {
    return guarded([this, f = std::move(f)](Result<T> result) mutable {
      saw(result ? nullptr : &result.error());
      executor.post(guarded([f = std::move(f), result = std::move(result)]() mutable { f(std::move(result)); }));
    });
  }

  /// The record in what the index holds, if it can be read and is the one of this id.
  [[nodiscard]] static std::optional<Record> read(const cache::StoredRecord& stored, const std::string& id);
  /// The record as it was stored.
  [[nodiscard]] std::optional<Record> stored(const std::string& collection, const std::string& id) const;
  void store(const std::string& collection, const Record& record, const std::string& etag = {}) const;
};

}  // namespace playfs::content
