// What histories show of a revision, in bounded memory: a revision with its tree may take megabytes, and a history has
// hundreds of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cache/lru.h"
#include "model/records.h"
#include "model/tree.h"

namespace playfs::content {

/// More than concurrent agents ever merge at once.
inline constexpr std::size_t kMostShownParents = 32;

struct RevisionSummary {
  RevisionId id;
  ProjectId project;
  std::vector<RevisionId> parents;  ///< the first ones
  std::size_t parent_count = 0;     ///< of all
  std::string agent;                ///< as shown_text()
  std::string message;              ///< as shown_text()
  WallTime created_at;
  bool is_automatic_merge = false;

  /// The parents that histories show and follow.
  [[nodiscard]] std::span<const RevisionId> shown_parents() const {
    return std::span(parents).first(std::min(parents.size(), kMostShownParents));
  }
  [[nodiscard]] std::size_t more_parents() const { return parent_count - shown_parents().size(); }
};
using SummaryPtr = std::shared_ptr<const RevisionSummary>;

[[nodiscard]] SummaryPtr summary_of(const RevisionTree& tree);

/// An author or message as histories show it: cut to the size of one record.
std::string shown_text(std::string_view text);

/// A cache of the summaries used last. Thread-safe.
class Summaries {
 public:
  /// nullptr if it is not here.
  [[nodiscard]] SummaryPtr find(const RevisionId& id) PLAYFS_EXCLUDES(mutex_);
  void add(const SummaryPtr& summary) PLAYFS_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kBytes = 8 << 20;
  Mutex mutex_;
  cache::Lru<RevisionId, SummaryPtr> kept_ PLAYFS_GUARDED_BY(mutex_){kBytes};
};

}  // namespace playfs::content
