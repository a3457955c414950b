// A directory with files that grow in place (`tail -f`): while programs look at them, the lists from which they are
// derived are kept current, and the files grow without being opened again. Thread-safe.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "vfs/control/growing_file.h"
#include "vfs/directories/followed_lists.h"
#include "vfs/directories/virtual_directory.h"

namespace playfs::vfs {

class GrowingDirectory : public VirtualDirectory {
 public:
  /// `files` are derived from the lists of `collections`, or from one owner's records in them.
  GrowingDirectory(Mount& mount, NodePtr parent, std::string name, std::vector<std::string> files,
                   std::vector<std::string> collections, std::optional<std::string> owner = {});

  void listed_anew() override;

 protected:
  /// One of the files, with its current content. An operation that has noted kGoesOn updates a file that is open: it
  /// requests only what is new.
  virtual Attempt<LookupResult> growing(const OperationPtr& op, const std::string& name) = 0;
  [[nodiscard]] bool grows(const std::string& name) const;
  /// A number for a text, taken before its sources are read: of two texts, the one with the higher number is newer.
  [[nodiscard]] std::uint64_t next_reading() { return ++readings_; }
  /// The living file of that name; nullptr: there is none.
  [[nodiscard]] std::shared_ptr<GrowingFile> file_of(const std::string& name);
  /// The file of that name, grown to `text`, or a new one.
  Attempt<LookupResult> growing_file(const OperationPtr& op, const std::string& name, const std::string& text,
                                     GrowingFile::Shown made_of);
  /// The result of a lookup of a file that has grown.
  Attempt<LookupResult> grown_file(const OperationPtr& op, const std::shared_ptr<GrowingFile>& file);
  /// Call when a program looks at the files. Returns whether the lists were not being followed before.
  bool looked() { return lists_.looked(shared_from_this()); }

 private:
  void grow();

  const std::vector<std::string> files_;
  FollowedLists lists_;
  std::atomic<std::uint64_t> readings_ = 0;
};

}  // namespace playfs::vfs
