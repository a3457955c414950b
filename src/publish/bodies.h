// The bodies of what is posted: made from a commit, and held to it again before they are sent. Content is read in
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

/// What a stored chunk's text is known to be.
struct ChunkText {
  ContentHash hash;
  std::uint64_t size = 0;  ///< bytes
};
using ChunkTexts = std::unordered_map<ChunkId, ChunkText>;
/// nullopt for a chunk of which nothing is known.
using FindChunkText = std::function<Result<std::optional<ChunkText>>(const ChunkId& id)>;

/// What a revision has to hold: the base's manifest with a frozen layer on top.
struct Expected {
  const Manifest& base;
  const stage::Frozen& frozen;
  const std::vector<PutFile>& puts;  ///< frozen.files with their content, in the same order
  const FindChunkText& chunks;
  std::string_view continuation;  ///< the text that the chunks of the manifest's continuation should be
};

/// Reads a revision's body as another client would and compares what it says, path by path and byte by byte, with
/// what was frozen. It shares no code with the planner, so that a mistake there is found before it is published.
/// Fails with `internal`; where content cannot be read.
Status check_revision_body(std::string_view body, const Expected& expected);

/// Whether a record of the service is the revision of this body: the same commit on the same parents with the same
/// files. Fields that a service may print in its own way (spelling of numbers, order) do not matter.
bool is_revision_of_body(const Revision& revision, std::string_view body);

}  // namespace playfs::publish
