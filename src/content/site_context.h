// What the parts of a Site share: client, caches, executor, log. One instance per Site; thread-safe.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/callback.h"
#include "base/executor.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "cache/lru.h"
#include "cache/object_store.h"
#include "cache/record_index.h"
#include "content/event_log.h"
#include "content/large_work.h"
#include "content/live.h"
#include "content/outage.h"
#include "content/patience.h"
#include "content/types.h"
#include "remote/client.h"

namespace playfs::content {

/// The share of one of several competitors that has `own` of `all` in use: half of what the others leave of twice the
/// `width`, but at least one. Alone it gets the whole width.
inline std::size_t share_of(std::size_t width, std::size_t own, std::size_t all) {
  const std::size_t others = std::min(all - own, 2 * width);
  return std::max<std::size_t>((2 * width - others) / 2, 1);
}

struct SiteContext {
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
  Live live{};
  /// Runs when an outage has ended; may be empty. Set before any use.
  std::function<void()> recovered{};
  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();  ///< closed when the Site is destroyed
  LargeWork large{executor};                                    ///< parsing of stored records that are large

  /// How many chunk requests may be in flight.
  [[nodiscard]] std::size_t parallel_chunks() const { return std::min(options.parallel_chunks, client.width()); }

  /// Whether what was requested then, in that period of `live`, needs no request now.
  [[nodiscard]] bool is_told(std::uint64_t period, SteadyTime asked_at) const {
    return live.is_current(period) && clock.steady() - asked_at < options.unchecked();
  }

  template <class F>
  auto guarded(F f) {
    return Gate::guard(gate, std::move(f));
  }

  /// Call after each request with its error; nullptr: it was answered.
  void saw(const Error* error);

  /// A callback for the client: reports to the outage watch, then runs `f` on the executor, because the client's
  /// threads carry all responses and must not wait for a disk.
  template <class T, class F>
  Callback<T> answered(F f) {
    return guarded([this, f = std::move(f)](Result<T> result) mutable {
      saw(result ? nullptr : &result.error());
      executor.post(guarded([f = std::move(f), result = std::move(result)]() mutable { f(std::move(result)); }));
    });
  }

  /// Decodes a record's JSON, if it is readable and has this id.
  [[nodiscard]] static std::optional<Record> read(std::string_view json, const std::string& id);
  /// The record as stored; parses one of any size.
  [[nodiscard]] std::optional<Record> stored(const std::string& collection, const std::string& id) const;
  /// Returns what it stored.
  std::string store(const std::string& collection, const Record& record);
  /// Whether a response with this version of the record or a newer one arrived after `asked_at`, so that the response
  /// to a request sent then must not be stored over it. A service's `updated_at` may have a resolution of seconds.
  [[nodiscard]] bool has_newer(const std::string& collection, const Record& record, SteadyTime asked_at);
  /// The same of the record as it was at `updated_at`.
  [[nodiscard]] bool has_newer(const std::string& collection, const std::string& id, WallTime updated_at,
                               SteadyTime since);

  struct Received {
    SteadyTime at;
    WallTime updated_at;
  };
  static constexpr std::size_t kMostReceived = 20'000;  ///< records; requests take seconds
  Mutex mutex{};
  cache::Lru<std::string, Received> received PLAYFS_GUARDED_BY(mutex){kMostReceived};
};

}  // namespace playfs::content
