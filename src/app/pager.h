// Long output by the page, as git shows it: $PLAYFS_PAGER, else $PAGER, else `less -FRX`, which shows what fits on a
// screen as it is. Only where stdout is a terminal and words are printed there; `cat` or an empty name: none.
//
// For one thread. While it lives what is written to the Io's out goes to the pager; it ends when the reader is done.
#pragma once

#include <memory>

#include "app/context.h"

namespace playfs::app {

class Pager {
 public:
  explicit Pager(Context& context, bool wanted = true);
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

 private:
  struct Running;
  Io& io_;
  std::unique_ptr<Running> running_;
};

}  // namespace playfs::app
