// Which files that give instructions to agents a work tree hides (model/instructions.h).
//
// Only lookups and listings ask. To all else, hidden files are like any: a directory that holds one is not empty and
// takes it along when it is moved, and a merge decides about it. Guarded by the stage's mutex.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "stage/inode.h"
#include "stage/store/row_store.h"

namespace playfs::stage {

class InstructionFiles {
 public:
  explicit InstructionFiles(Instructions shown) : shown_(shown) {}

  // As stored, one in a line.
  static constexpr std::string_view kTrusted = "trusted_instructions", kConcealed = "concealed_instructions";
  void load(const std::string& trusted, const std::string& concealed);

  [[nodiscard]] bool hides_any() const { return shown_ != Instructions::show; }
  /// Whether the bytes of a published file with such a path are shown.
  [[nodiscard]] bool shows(const FileEntry& entry) const;
  /// Whether a file or directory with such a path is. A directory is if anything in it is, or nothing is in it.
  [[nodiscard]] bool shows(const Inode& inode) const;

  /// The author's own from now on.
  void trust(Batch& batch, const ContentHash& content);
  /// The same of what is about to be published from here: it stays visible.
  void publish(Batch& batch, const ContentHash& content);
  [[nodiscard]] const std::set<std::string>& trusted() const { return trusted_; }
  [[nodiscard]] const std::set<std::string>& published_here() const { return published_here_; }
  /// What a merge put at such a path without anyone having seen it: `inos`. Those that are gone may be left out.
  void conceal(Batch& batch, std::set<std::uint64_t> inos);
  [[nodiscard]] const std::set<std::uint64_t>& concealed() const { return concealed_; }

 private:
  [[nodiscard]] bool shows(const Tree::Directory& directory, const Directory* over) const;

  /// Versions of the author's own files; the oldest are forgotten, in no particular order.
  static constexpr std::size_t kMostTrusted = 4096;

  const Instructions shown_;
  std::set<std::string> trusted_;         ///< instructions_identity(), in hex
  std::set<std::string> published_here_;  ///< the same, since the stage was opened
  std::set<std::uint64_t> concealed_;     ///< inodes with local bytes
};

}  // namespace playfs::stage
