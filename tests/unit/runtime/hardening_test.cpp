#include "runtime/hardening.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace playfs::runtime {
namespace {

/// Whether `held` is true in a child process that has given something up for good.
template <class GiveUp, class Held>
bool holds_after(GiveUp give_up, Held held) {
  const pid_t child = fork();
  if (child == 0) {
    give_up();
    _exit(held() ? 0 : 1);
  }
  int how = 0;
  waitpid(child, &how, 0);
  return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

TEST(Hardening, GivesUpWhatItsNameSays) {
  EXPECT_TRUE(holds_after(forgo_core_dumps, [] {
    rlimit limit{1, 1};
    return getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0 && limit.rlim_max == 0;
  }));
  EXPECT_TRUE(holds_after(forgo_new_privileges, [] { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1; }));
  EXPECT_TRUE(holds_after(forgo_inspection, [] { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0; }));
}

}  // namespace
}  // namespace playfs::runtime
