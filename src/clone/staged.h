// What the stage has at a path, as a clone compares it with its directory.
#pragma once

#include <optional>
#include <string>

#include "model/content_hash.h"
#include "model/tree.h"
#include "stage/stage.h"

namespace playfs::clone {

struct StagedFile {
  stage::InodePtr inode;
  stage::Kind kind = stage::Kind::file;
  FileMode mode = FileMode::regular;
  std::optional<FileRef> lower;     ///< its content is still a revision's
  std::optional<ContentHash> hash;  ///< if it is known without reading
  /// Identifies the content: of a revision by its manifest entry, local content by the inode number. Only take-in
  /// itself changes the content of an inode; anything else puts a new one.
  std::string key;

  [[nodiscard]] bool has_content() const { return kind == stage::Kind::file || kind == stage::Kind::symlink; }
};

/// nullopt: nothing is there.
Result<std::optional<StagedFile>> staged_at(stage::Stage& stage, const std::string& path);
Result<StagedFile> staged_file(stage::Stage& stage, const stage::InodePtr& inode);

/// The hash of content in the stage, read if it is local; nullopt for a revision's that says nothing of its hash.
Result<std::optional<ContentHash>> hash_of(stage::Stage& stage, const StagedFile& file);

}  // namespace playfs::clone
