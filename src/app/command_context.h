// The environment of every command. For one thread; everything referred to outlives the command.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/output.h"
#include "app/shown_progress.h"
#include "app/transfer_progress.h"
#include "app/tree_origin.h"
#include "base/result.h"
#include "base/shell.h"
#include "runtime/client_stack.h"
#include "runtime/config.h"
#include "runtime/io.h"
#include "runtime/places.h"
#include "runtime/source.h"

namespace playfs::app {

/// A service as a command uses it. Says on stderr which answer the command waits for, and how long it will wait; and,
/// if the command begins a progress, how far it has come.
class OpenStack {
 public:
  OpenStack() = default;
  OpenStack(std::unique_ptr<runtime::ClientStack> stack, Output& out);
  runtime::ClientStack& operator*() const { return *stack_; }
  runtime::ClientStack* operator->() const { return stack_.get(); }
  explicit operator bool() const { return stack_ != nullptr; }
  [[nodiscard]] TransferProgress& progress() const { return *progress_; }

 private:
  std::unique_ptr<runtime::ClientStack> stack_;
  std::unique_ptr<TransferProgress> progress_;  // uses the stack
  std::unique_ptr<ShownProgress> waiting_;      // uses both
};

/// Whether the mark of the tree around the working directory chooses the service. Anybody may have made that tree, and
/// handed it out in an archive or a repository. So a mark counts where a command is about the tree, and never where it
/// is about who the user is, or begins something that has nothing to do with the tree.
enum class Marks { count, do_not_count };

struct CommandContext {
  runtime::Io& io;
  Output& out;
  runtime::Places places;
  runtime::Settings settings;

  /// The service for a command without a mount: --site, else that of the mount or exported tree around the working
  /// directory, if marks count, else PLAYFS_SITE or the configuration, else the embedded playground.
  [[nodiscard]] Result<runtime::Source> source(Marks marks = Marks::count) const;
  [[nodiscard]] Result<runtime::Source> source(const std::string& text) const;
  /// The service that a tree was exported from.
  [[nodiscard]] Result<runtime::Source> source(const TreeOrigin& origin) const;
  [[nodiscard]] Result<OpenStack> open_client_stack(Marks marks = Marks::count) const;
  [[nodiscard]] Result<OpenStack> open_client_stack(const runtime::Source& chosen) const;
  /// For commands that read a little while somebody waits: a read that has no answer fails sooner.
  [[nodiscard]] Result<OpenStack> open_to_look(Marks marks = Marks::count) const;

  /// The author of what a command writes to this service: its own --agent, else author_here() (author.h).
  [[nodiscard]] Result<std::string> agent(const std::optional<std::string>& given, const std::string& site) const;

  /// A command to type next, for the same service.
  [[nodiscard]] std::string next_command(ShellCommand command) const;
};

}  // namespace playfs::app
