// Shows long output in a pager, like git: $PLAYFS_PAGER, else $PAGER, else `less -FRX`, which just prints what fits on
// a screen. Only for text on a terminal; `cat` or an empty name disables it.
//
// For one thread. While it lives, the Io's out is redirected to the pager; the destructor waits for the pager to quit.
#pragma once

#include <memory>

#include "app/command_context.h"

namespace playfs::app {

class Pager {
 public:
  explicit Pager(CommandContext& context, bool wanted = true);
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

 private:
  struct Running;
  runtime::Io& io_;
  Output& out_;
  std::unique_ptr<Running> running_;
};

}  // namespace playfs::app
