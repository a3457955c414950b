// One thread: its record, its messages, and `reply`.
//
// `messages.md`, `messages.ndjson` and `thread.mbox` grow in place.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <string>

#include "vfs/directories/growing_directory.h"
#include "vfs/directories/projects.h"
#include "vfs/directories/virtual_directory.h"

namespace playfs::vfs {

class ThreadDirectory final : public GrowingDirectory {
 public:
  ThreadDirectory(Mount& mount, NodePtr parent, std::string name, std::string thread);

 protected:
  [[nodiscard]] bool has_records() const override { return true; }
  [[nodiscard]] mode_t type_of(const std::string&) const override { return S_IFREG; }
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
  Attempt<LookupResult> growing(const OperationPtr& op, const std::string& name) override;

 private:
  /// One reading of the thread's messages from the list, from which a text is rendered.
  struct Reading {
    std::uint64_t number = 0;  ///< a later one shows what is newer
    ListPtr messages;
  };
  using ReadingPtr = std::shared_ptr<const Reading>;

  /// The current operation's reading: the same one until it ends.
  Attempt<ReadingPtr> reading(const OperationPtr& op);
  /// The file of that name with what is new appended; nullptr if it cannot just grow. `head`: what its text begins
  /// with.
  Attempt<std::shared_ptr<GrowingFile>> grown(const OperationPtr& op, const std::string& name, const std::string& head,
                                              const Reading& now);
  /// The newest that are shown, oldest first; `older`: how many before them are left out.
  Attempt<std::vector<content::RecordPartPtr>> newest(const OperationPtr& op, const ListPtr& messages,
                                                      content::Reduce reduce, std::size_t& older);
  Async<RequestAnswer> reply(OperationPtr op, std::string text);

  const std::string thread_;
  std::atomic<bool> told_ = false;  ///< that older messages are left out
};

/// The messages of one thread, as files ID.json.
class MessagesDirectory final : public VirtualDirectory {
 public:
  MessagesDirectory(Mount& mount, NodePtr parent, std::string name, std::string thread);

 protected:
  [[nodiscard]] bool has_records() const override { return true; }
  [[nodiscard]] mode_t type_of(const std::string&) const override { return S_IFREG; }
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
  [[nodiscard]] std::string made_of() const override { return "messages"; }
  [[nodiscard]] std::optional<std::string> made_of_owner() const override { return thread_; }

 private:
  const std::string thread_;
  DerivedNames derived_;
};

}  // namespace playfs::vfs
