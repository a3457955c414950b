// `.playfs/`: the mount's own files.
#pragma once

#include <atomic>

#include "vfs/growing_file.h"
#include "vfs/virtual_directory.h"

namespace playfs::vfs {

class OwnDirectory final : public VirtualDirectory {
 public:
  using VirtualDirectory::VirtualDirectory;

 protected:
  Attempt<Found> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;

 private:
  Attempt<Found> growing(const OperationPtr& op, const std::string& name);
  [[nodiscard]] std::string log_text(const std::string& name) const;
  void listen();
  /// Brings the files that somebody has looked at up to date.
  void appended();
  [[nodiscard]] Json status_json() const;
  [[nodiscard]] Json limits_json() const;

  std::atomic<bool> listening_ = false;
  std::atomic<bool> update_due_ = false;
};

}  // namespace playfs::vfs
