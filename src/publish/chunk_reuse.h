// What a plan may refer to instead of uploading it: chunks that were uploaded from here, and the previous chunks of
// changed files. For one thread; blocking.
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

/// Chunks that were uploaded from here; each is looked up on demand. The journal must outlive this object.
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

/// Reads the previous chunks of files, so that their new content can be chunked around them.
class NearChunks {
 public:
  NearChunks(Upstream& upstream, Stored& stored) : upstream_(upstream), stored_(stored) {}

  /// Adds the chunks of `entry` for what is at `path` now. Skips them if they cannot be read, or if the total would be
  /// too large.
  Status add(const std::string& path, const FileEntry& entry);

 private:
  Upstream& upstream_;
  Stored& stored_;
  std::size_t read_ = 0;
};

}  // namespace playfs::publish
