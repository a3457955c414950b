// Builds the bodies of POST requests from a commit, and checks them against it before they are sent. Content is read in
// pieces, never whole.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "model/plan.h"
#include "model/records.h"
#include "stage/stage.h"

namespace playfs::publish {

/// Sizes as wire prints them.
class WireSizes final : public RecordSizes {
 public:
  [[nodiscard]] std::size_t entry(const FileEntry& entry) const override;
  [[nodiscard]] std::size_t revision(const RevisionDraft& draft) const override;
  [[nodiscard]] std::size_t chunk(const ChunkDraft& draft) const override;
  [[nodiscard]] std::string continuation(const std::map<std::string, FileEntry, std::less<>>& files) const override;
};

/// What is known of a stored chunk's text.
struct ChunkText {
  ContentHash hash;
  std::uint64_t size = 0;  ///< bytes
};
using ChunkTexts = std::unordered_map<ChunkId, ChunkText>;
/// nullopt if nothing is known of the chunk.
using FindChunkText = std::function<Result<std::optional<ChunkText>>(const ChunkId& id)>;

/// What a revision has to hold: the base's manifest with a frozen layer on top.
struct Expected {
  const Manifest& base;
  const stage::Frozen& frozen;
  const std::vector<PutFile>& puts;  ///< frozen.files with their content, in the same order
  const FindChunkText& chunks;
  std::string_view continuation;  ///< the expected text of the manifest's continuation
};

/// Parses a revision's body as another client would, and compares it with what was frozen, path by path and byte by
/// byte. Shares no code with the planner, so that a planner's mistake is found before it is published. Fails with
/// `internal` on a difference, and with the read's error if content cannot be read.
Status check_revision_body(std::string_view body, const Expected& expected);

/// Whether a record of the service is the revision of this body: the same commit, parents and files. Ignores fields
/// that a service may print in its own way (spelling of numbers, order).
bool is_revision_of_body(const Revision& revision, std::string_view body);

}  // namespace playfs::publish
