#include "app/bug_report/libraries.h"
#include "app/commit.h"

namespace playfs::app {

std::string build_commit() { return kCommit; }

}  // namespace playfs::app
