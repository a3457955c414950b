// Knows which chunks the service has now, as opposed to had once.
//
// A service can go back to an older state: it is restored from a backup, or a site that nobody claimed expires. Chunks
// uploaded after that state are gone then, though the journal has their ids. So a plan refers to a chunk only if it was
// seen: acknowledged a moment ago, read by a request, or named by a revision that the service has (a state that holds a
// revision holds everything older). Reading is cheap; a commit whose chunks were all acknowledged or named costs no
// additional request.
//
// All that holds only if the service does not go back before the revision is posted. So once the revision is seen, a
// few chunks are requested again (find_lost()). For one thread; blocking.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "model/content_hash.h"
#include "model/manifest.h"
#include "publish/doubt.h"
#include "publish/upstream.h"

namespace playfs::publish {

using ChunkIds = std::unordered_set<ChunkId>;

class StoredChunks {
 public:
  /// The hash of the text that was sent as that chunk; nullopt if it is another client's, or not known any more.
  using SentAs = std::function<Result<std::optional<ContentHash>>(const ChunkId& chunk)>;

  /// `late_arrival`: how long reads may lag.
  StoredChunks(Upstream& upstream, SentAs sent_as, const Clock& clock,
               std::chrono::nanoseconds late_arrival = std::chrono::minutes(2))
      : upstream_(upstream), sent_as_(std::move(sent_as)), clock_(clock), late_arrival_(late_arrival) {}

  /// The service has just acknowledged or returned it.
  void saw(const ChunkId& chunk) { seen_[chunk] = clock_.steady(); }
  /// The service has just stored it, after those reported before.
  void stored(const ChunkId& chunk) {
    saw(chunk);
    stored_.push_back(chunk);
  }
  /// Nothing seen so far counts any more, because the service went back. The order in which chunks were stored still
  /// does.
  void forget_all() {
    seen_.clear();
    found_.clear();
  }
  /// A service that went back was usually unreachable before, so after an error acknowledged chunks are looked up
  /// again. Those that were looked up before are not: on a bad network the next error comes before all are answered,
  /// again and again. find_lost() finds what this misses.
  void doubt_after_an_error() { seen_.clear(); }
  /// Another publication begins.
  void begin_anew() {
    forget_all();
    stored_.clear();
    there_.clear();
    missing_.clear();
  }

  /// Those of `chunks` that the service does not have, or has with another text: one that went back may use an id
  /// again. Looks up each that was neither acknowledged lately nor looked up before, in parallel.
  Result<ChunkIds> find_missing(const ChunkIds& chunks);
  /// Whether every lookup of a missing chunk has missed it for as long as reads may lag, as in absences.h. Uploading it
  /// again is harmless and need not wait for that. Publishing without it does.
  [[nodiscard]] bool is_gone(const ChunkId& chunk) const;
  /// Those of `chunks` that are lost, once a revision that refers to them was seen: the service may have gone back
  /// after they were seen and before the revision was posted; then it has the revision without the chunks. A service
  /// that goes back loses everything stored since the state that it goes back to. So if the order in which chunks were
  /// stored is roughly known, a few are witnesses for the others: the first ones for going back during the upload, the
  /// last ones for going back to a state in between, some for both. All other chunks are looked up, and if one is gone,
  /// all are. What was seen after `revision` was there stays with it, so it is not looked up again after an error.
  Result<ChunkIds> find_lost(const RevisionId& revision, const ChunkIds& chunks);

 private:
  /// How long an acknowledgement counts. Chunks of a longer upload are looked up once more before they are referred to.
  static constexpr std::chrono::minutes kLately{2};
  /// At most this many are uploaded in parallel (PublisherOptions) and stored in any order, so the one stored last is
  /// among the last that were answered. What goes unnoticed is a state that is saved and restored between two
  /// successive witnesses.
  static constexpr std::size_t kSideBySide = 8;

  /// What is answered counts, even if the call fails.
  Status ask_for(const std::vector<ChunkId>& chunks, ChunkIds& there, ChunkIds& gone);

  [[nodiscard]] Result<bool> has_text_of(const ChunkId& chunk, const Record& found) const;

  Upstream& upstream_;
  const SentAs sent_as_;
  const Clock& clock_;
  const std::chrono::nanoseconds late_arrival_;
  struct Missing {
    Doubt doubt;
    bool is_gone = false;
  };
  std::unordered_map<ChunkId, Missing> missing_;  ///< when it was last looked up
  std::unordered_map<ChunkId, SteadyTime> seen_;  ///< acknowledged, and when
  ChunkIds found_;                                ///< looked up and there
  std::vector<ChunkId> stored_;                   ///< by this publication, in that order
  RevisionId there_with_;                         ///< the last `revision` of find_lost()
  ChunkIds there_;                                ///< seen after that revision was there
};

/// A planned manifest plus the files in its continuation, whose text is given; "" if it has none.
Result<Manifest> with_continuation(Manifest planned, std::string_view continuation);

/// The chunks that a manifest names, including those of its continuation.
ChunkIds chunks_of(const Manifest& manifest);

}  // namespace playfs::publish
