// Which chunks are on the service now, as opposed to: were once.
//
// A service can go back to an older state: it is restored from a backup, or a site that nobody claimed expires. Chunks
// that were uploaded after that state are gone then, though the journal remembers their ids. So a plan refers to a
// chunk only if it was seen: acknowledged a moment ago, read by a request, or named by a revision that the service has
// (a state that holds a revision holds what is older). Reading is cheap; a commit whose chunks are all of those kinds
// costs no request more.
//
// All that holds for as long as the service does not go back before the revision is posted. So once that is seen, a few
// chunks are asked for again (find_lost()). For one thread; waits.
#pragma once

#include <chrono>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "model/manifest.h"
#include "publish/doubt.h"
#include "publish/upstream.h"

namespace playfs::publish {

using ChunkIds = std::unordered_set<ChunkId>;

class StoredChunks {
 public:
  /// `late_arrival`: how long reads may lag.
  StoredChunks(Upstream& upstream, const Clock& clock, std::chrono::nanoseconds late_arrival = std::chrono::minutes(2))
      : upstream_(upstream), clock_(clock), late_arrival_(late_arrival) {}

  /// The service has just acknowledged it, or given it.
  void saw(const ChunkId& chunk) { seen_[chunk] = clock_.steady(); }
  /// The service has just stored it, after those that were told before.
  void stored(const ChunkId& chunk) {
    saw(chunk);
    stored_.push_back(chunk);
  }
  /// What was seen says nothing any more: the service has gone back. What was stored after what is true for good.
  void forget_all() {
    seen_.clear();
    found_.clear();
  }
  /// Whoever went back as a rule was away before, so what was acknowledged is asked for after an error. What was asked
  /// for is not asked for again: on a bad road the next error comes before all are answered, and so for ever. What is
  /// missed by that, find_lost() finds.
  void doubt_after_an_error() { seen_.clear(); }
  /// Another publication begins.
  void begin_anew() {
    forget_all();
    stored_.clear();
    there_.clear();
    missing_.clear();
  }

  /// Those of `chunks` that the service does not have. Asks for each that was neither acknowledged lately nor
  /// asked for before, many at once.
  Result<ChunkIds> find_missing(const ChunkIds& chunks);
  /// Of one that was missing: whether every look for as long as reads may lag has missed it, as absences.h has it of
  /// revisions. To upload it again harms nobody, so that need not wait. To publish without it does.
  [[nodiscard]] bool is_gone(const ChunkId& chunk) const;
  /// The same once a revision that refers to them was seen: the service may have gone back after they were seen and
  /// before it was posted, and has the revision then, and not the chunks. A service that goes back loses all that was
  /// stored since the state it goes back to. So of those that were stored in an order that is about known a few are
  /// witnesses for the others: the first for going back while they were uploaded, the last for going back to a state in
  /// between, some for both. The others are asked for, and so are all where one is gone. What was seen once `revision`
  /// was there stays with it, so it is not asked for again after an error.
  Result<ChunkIds> find_lost(const RevisionId& revision, const ChunkIds& chunks);

 private:
  /// How long what was acknowledged counts. An upload that takes longer is looked at once more before it is referred
  /// to.
  static constexpr std::chrono::minutes kLately{2};
  /// So many are uploaded side by side at the most (PublisherOptions), and are stored in any order: the one that was
  /// stored last is among the last that were answered. What remains is a state that was saved and put back between two
  /// witnesses that follow each other.
  static constexpr std::size_t kSideBySide = 8;

  /// What is answered counts, also where it fails.
  Status ask_for(const std::vector<ChunkId>& chunks, ChunkIds& there, ChunkIds& gone);

  Upstream& upstream_;
  const Clock& clock_;
  const std::chrono::nanoseconds late_arrival_;
  struct Missing {
    Doubt doubt;
    bool is_gone = false;
  };
  std::unordered_map<ChunkId, Missing> missing_;  ///< when it was asked for last
  std::unordered_map<ChunkId, SteadyTime> seen_;  ///< acknowledged, and when
  ChunkIds found_;                                ///< asked for, and there
  std::vector<ChunkId> stored_;                   ///< by this publication, in that order
  RevisionId there_with_;                         ///< what find_lost() was asked about last
  ChunkIds there_;                                ///< seen since that was there
};

/// A planned manifest with the files that went into its continuation, whose text that is; "" where it has none.
Result<Manifest> with_continuation(Manifest planned, std::string_view continuation);

/// The chunks that a manifest names, those of its continuation too.
ChunkIds chunks_of(const Manifest& manifest);

}  // namespace playfs::publish
