// Chunks known by hash and length, in memory.
#pragma once

#include <set>
#include <unordered_map>

#include "model/rechunk.h"

namespace playfs::test {

class PiecesInMemory final : public KnownPieces {
 public:
  void add(const ContentHash& text, std::size_t size, ChunkId id) {
    chunks_.insert_or_assign(text, std::move(id));
    sizes_.insert(size);
  }
  [[nodiscard]] Result<std::optional<ChunkId>> find(const ContentHash& text) const override {
    auto found = chunks_.find(text);
    return found == chunks_.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] const std::set<std::size_t>& sizes() const override { return sizes_; }

 private:
  std::unordered_map<ContentHash, ChunkId> chunks_;
  std::set<std::size_t> sizes_;
};

}  // namespace playfs::test
