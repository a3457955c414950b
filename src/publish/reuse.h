// What a plan may refer to instead of uploading it: chunks that were uploaded from here, and those that files had
// before they changed. For one thread; waits.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "model/plan.h"
#include "publish/journal.h"
#include "publish/upstream.h"

namespace playfs::publish {

/// Chunks that were uploaded from here, looked up as they are asked for. The journal must outlive it.
class KnownFromHere final : public KnownPieces {
 public:
  static Result<KnownFromHere> open(Journal& journal);
  [[nodiscard]] Result<std::optional<ChunkId>> find(const ContentHash& text) const override;
  [[nodiscard]] const std::set<std::size_t>& sizes() const override { return sizes_; }

 private:
  KnownFromHere(Journal& journal, std::set<std::size_t> sizes) : journal_(&journal), sizes_(std::move(sizes)) {}
  Journal* journal_;
  std::set<std::size_t> sizes_;
};

/// Reads the chunks that files had, so that what they are now can be cut around them.
class NearChunks {
 public:
  NearChunks(Upstream& upstream, Stored& stored) : upstream_(upstream), stored_(stored) {}

  /// Those of `entry`, for what stands at `path` now. Left out where nobody can read them, and where all together
  /// would be too many.
  Status add(const std::string& path, const FileEntry& entry);

 private:
  Upstream& upstream_;
  Stored& stored_;
  std::size_t read_ = 0;
};

}  // namespace playfs::publish
