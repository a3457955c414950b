// Values that a Site returns, and its settings.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cache/record_index.h"
#include "content/text.h"
#include "model/chunking.h"
#include "model/records.h"
#include "model/tree.h"

namespace playfs::content {

/// A project's record as last seen.
struct Head {
  Project project;        ///< without its record's fields, which may have megabytes
  SteadyTime fetched_at;  ///< when it was requested; long ago if from an earlier process
  /// The revision that the project shows: the most recent latest revision that has been fetched and is its own. Empty:
  /// it shows that nothing is published. nullopt: nothing has been fetched yet.
  std::optional<RevisionId> shown;
  std::shared_ptr<const Error> refused;  ///< why the latest revision will never be shown, if known

  [[nodiscard]] bool shows_latest() const { return shown == project.latest_revision; }
  /// Whether the latest revision is either shown or known to be refused.
  [[nodiscard]] bool is_settled() const { return refused || shows_latest(); }
};

/// A past state of a project's head.
struct SeenHead {
  WallTime changed_at;  ///< when the service changed the record, by its clock
  RevisionId revision;

  /// Whether `record` names another head and is older: it comes from a replica that lags, or the service was rolled
  /// back.
  [[nodiscard]] bool is_newer_than(const Project& record) const;
};

/// A list entry: a record without its body. `name` is an agent's handle, otherwise the record's name or title; a
/// message's `project` is its thread.
using Listed = cache::ListedRecord;
using ListPtr = std::shared_ptr<const std::vector<Listed>>;

/// Which records of a list have changed.
struct ListChange {
  bool is_any = false;           ///< of any owner
  std::set<std::string> owners;  ///< Listed::project of those that changed, before and after
  [[nodiscard]] bool touches(const std::string& owner) const { return is_any || owners.contains(owner); }
};

/// A record as it is stored: parsed, it may take thirty times the memory.
struct RecordText {
  std::string collection, id;
  std::string json;
};
using RecordTextPtr = std::shared_ptr<const RecordText>;

/// The part of a record that a caller needs: a few fields, and the text of the file that shows it.
struct Reduced {
  Record record;
  std::string text;
};
using Reduce = Reduced (*)(Record);
struct RecordPart {
  Record record;
  Text text;
};
using RecordPartPtr = std::shared_ptr<const RecordPart>;

/// Records of more bytes than this are parsed only on threads that nobody else waits for. A service keeps smaller ones.
inline constexpr std::size_t kParsedAtOnce = 4 * kMaxRecordSize;
/// Smaller records that take more memory than this once parsed are reduced only on threads that serve readers of
/// records.
inline constexpr std::size_t kReducedAtOnce = 64 << 10;

/// What is known of a revision without parsing a large record.
struct RevisionAtOnce {
  RevisionTreePtr tree = nullptr;
  bool takes_long = false;  ///< it is stored, and Site::revision() reads it elsewhere
};
/// How large a record a thread may parse: `at_once` if others wait for the thread, `ordinary` if only readers of
/// records do.
enum class Reads { at_once, ordinary, any };
struct PartAtOnce {
  RecordPartPtr part = nullptr;
  bool takes_long = false;  ///< it is stored, and to be read elsewhere
  bool is_large = false;    ///< elsewhere must be a thread that reads any
};

struct SiteOptions {
  std::chrono::milliseconds refresh{10'000};  ///< maximum age of a head before it is requested again
  std::chrono::milliseconds in_use{300'000};  ///< how long after its last follow() a project is polled
  /// How long known data counts as current because no event has named it. A proxy may keep the connection of the events
  /// alive and pass on none of them, so even then it is requested again from time to time, if somebody reads it.
  [[nodiscard]] std::chrono::milliseconds unchecked() const {
    return std::max<std::chrono::milliseconds>(10 * refresh, std::chrono::minutes(1));
  }
  bool prefetch = true;
  // Limits of prefetch per revision; the rest is fetched when read.
  std::size_t prefetch_chunks = 4096;
  std::uint64_t prefetch_bytes = 64 << 20;    ///< the larger of the claimed size and what the chunks may hold
  std::uint64_t file_ceiling = kMaxFileSize;  ///< bytes; larger files are refused
  /// The most memory, in bytes, for one collection's list: about 150,000 records with typical names. Older ones are not
  /// kept.
  std::size_t list_bytes = 20 << 20;
  std::size_t parallel_chunks = 512;  ///< chunk requests in flight, if the transport is as wide
};

}  // namespace playfs::content
