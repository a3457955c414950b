// Writes to a clone's directory what the stage has and, according to the index, the directory has not. What was changed
// in the directory meanwhile stays as it is. Blocking; for one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "clone/index.h"
#include "clone/plain_directory.h"
#include "clone/staged.h"
#include "content/blob.h"
#include "content/lone_failures.h"
#include "stage/stage.h"

namespace playfs::clone {

struct BroughtOut {
  struct LeftOut {
    std::string path;
    Error why;
    bool is_final = false;  ///< otherwise it is tried again, and an older version stays until then
  };
  std::uint64_t written = 0;  ///< files and links
  std::uint64_t removed = 0;
  std::vector<LeftOut> left_out;       ///< content that is unavailable now, or that would be dangerous
  std::vector<std::string> contested;  ///< changed in the directory since it was looked at: take that in first

  [[nodiscard]] bool lacks_some() const {
    return std::any_of(left_out.begin(), left_out.end(), [](const LeftOut& each) { return !each.is_final; });
  }
};

class BringOut {
 public:
  /// The content of a published file.
  using Fetch = std::function<Result<content::Blob>(const FileRef&)>;

  BringOut(stage::Stage& stage, const PlainDirectory& directory, Index& index, Fetch fetch)
      : stage_(stage), directory_(directory), index_(index), fetch_(std::move(fetch)) {}

  /// On an error, such as a service that does not answer, what was brought out so far is in the index; the rest can be
  /// brought out later.
  Status run();
  [[nodiscard]] const BroughtOut& result() const { return result_; }

 private:
  Status survey(const stage::InodePtr& directory, const std::string& path);
  /// Whether the stage has nothing in a local-only directory but the name that stands for its content.
  [[nodiscard]] Result<bool> is_but_local(const stage::InodePtr& directory, const Row& row) const;
  Status remove_what_is_gone();
  void forget_left_out();
  Status make_directories();
  Status bring(const std::string& path, const StagedFile& staged);
  [[nodiscard]] bool is_there(const Row& row, const StagedFile& staged) const;
  Status write(const std::string& path, const StagedFile& staged);
  [[nodiscard]] Result<PlainDirectory::Prepared> prepare(const std::string& path, const StagedFile& staged,
                                                         ContentHash& hash);
  [[nodiscard]] Result<std::string> target_of(const StagedFile& staged) const;
  [[nodiscard]] Status copy(const std::string& path, const StagedFile& staged, int file, ContentHash& hash) const;
  Status leave_out(const std::string& path, const StagedFile& staged, const Error& why);
  /// Accepts what is at a path if it is what the index row says; without a row, if nothing is there.
  [[nodiscard]] PlainDirectory::MayGo as_known(const std::string& path) const;

  stage::Stage& stage_;
  const PlainDirectory& directory_;
  Index& index_;
  const Fetch fetch_;
  std::map<std::string, StagedFile> files_;
  std::map<std::string, stage::InodePtr> directories_;
  content::LoneFailures failures_;
  BroughtOut result_;
};

}  // namespace playfs::clone
