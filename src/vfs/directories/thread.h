// One thread: its record, its messages, and `reply`.
//
// `messages.md` and `messages.ndjson` grow in place. While somebody looks at them, the list of messages is kept
// current, and they grow without being opened again: for `tail -f`.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <string>

#include "vfs/directories/projects.h"
#include "vfs/directories/virtual_directory.h"

namespace playfs::vfs {

class ThreadDirectory final : public VirtualDirectory {
 public:
  ThreadDirectory(Mount& mount, NodePtr parent, std::string name, std::string thread);

  void listed_anew() override;

 protected:
  [[nodiscard]] bool has_records() const override { return true; }
  [[nodiscard]] mode_t type_of(const std::string&) const override { return S_IFREG; }
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;

 private:
  Attempt<LookupResult> messages(const OperationPtr& op, const std::string& name);
  /// One reading of the list, which a text is made of.
  struct Reading {
    std::uint64_t number = 0;  ///< a later one shows what is newer
    ListPtr list;
  };
  using ReadingPtr = std::shared_ptr<const Reading>;

  /// The same one for the whole operation.
  Attempt<ReadingPtr> reading(const OperationPtr& op);
  /// The newest that are shown, oldest first; `older`: how many before them are left out.
  Attempt<std::vector<content::RecordPartPtr>> newest(const OperationPtr& op, const ListPtr& list,
                                                      content::Reduce reduce, std::size_t& older);
  Async<RequestAnswer> reply(OperationPtr op, std::string text);
  /// Somebody looks at the messages. Returns whether nobody had for a while.
  bool looked();
  /// Keeps the list current as long as somebody does.
  void follow();
  /// Has the list read, if it may be outdated.
  void read_if_old();
  void grow();

  const std::string thread_;
  std::atomic<std::uint64_t> readings_ = 0;
  std::atomic<bool> told_ = false;  ///< that older messages are left out
  std::atomic<SteadyTime> looked_at_{};
  std::atomic<bool> follows_ = false;
  std::atomic<bool> is_due_ = false;
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

 private:
  const std::string thread_;
  DerivedNames derived_;
};

/// Checks what a message says, and sets what messages have and its author left out.
Status complete_message(JsonObject& message);

}  // namespace playfs::vfs
