#include "vfs/control/draft.h"

#include <utility>

#include "vfs/control/request_journal.h"
#include "vfs/control/request_text.h"

namespace playfs::vfs {

Draft::Draft(RequestJournal& journal, std::string path)
    : journal_(journal), path_(std::move(path)), name_(journal.new_draft()) {}

Status Draft::keep(const RequestText& text) {
  MutexLock io(io_);
  if (has_ended_) return {};
  PLAYFS_CHECK(journal_.keep_draft(name_, path_, text.written()));
  is_kept_ = true;
  return {};
}

Error Draft::give_up(const RequestText& text, Error why) {
  MutexLock io(io_);
  if (has_ended_) return why;
  has_ended_ = true;
  return journal_.give_up_draft(name_, path_, text.written(), std::move(why));
}

void Draft::end() {
  MutexLock io(io_);
  if (is_kept_ && !has_ended_) journal_.drop_draft(name_);
  has_ended_ = true;
}

}  // namespace playfs::vfs
