// Values that a Site hands out, and its settings.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "cache/record_index.h"
#include "model/chunking.h"
#include "model/records.h"

namespace playfs::content {

/// A project's record as last seen.
struct Head {
  Project project;
  SteadyTime fetched_at;  ///< when the service was asked for it; long ago for one from an earlier process
  /// What the project shows: the newest of its latest revisions that has been here, and is its own. Empty: it shows
  /// that nothing is published; nullopt: nothing has been here yet.
  std::optional<RevisionId> shown;
  std::shared_ptr<const Error> refused;  ///< why the latest revision will never be shown; nullptr: no reason is known

  [[nodiscard]] bool shows_latest() const { return shown == project.latest_revision; }
  /// Whether there is nothing to find out about the latest revision.
  [[nodiscard]] bool is_settled() const { return refused || shows_latest(); }
};

/// Where a project's head was.
struct SeenHead {
  WallTime changed_at;  ///< when the service changed the record, by its own clock
  RevisionId revision;
};

/// A record of a list without its body. `name` is an agent's handle, else the record's name, else its title;
/// `project` of a message is its thread.
using Listed = cache::ListedRecord;
using ListPtr = std::shared_ptr<const std::vector<Listed>>;

struct SiteOptions {
  std::chrono::milliseconds refresh{10'000};  ///< how old a head may be before it is asked for again
  std::chrono::milliseconds in_use{300'000};  ///< how long after its last follow() a project's head is asked for
  bool prefetch = true;
  // What is fetched ahead of one revision; the rest when it is read.
  std::size_t prefetch_chunks = 4096;
  std::uint64_t prefetch_bytes = 64 << 20;    ///< as claimed by the manifest, or what its chunks may hold
  std::uint64_t file_ceiling = kMaxFileSize;  ///< bytes; larger files are refused
  /// Bytes that the list of one collection may take in memory: some 150,000 records with usual names. What is older
  /// than what fits is not kept.
  std::size_t list_bytes = 20 << 20;
  std::size_t parallel_chunks = 512;  ///< chunk requests under way at once, where the transport is as wide
};

}  // namespace playfs::content
