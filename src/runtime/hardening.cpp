#include "runtime/hardening.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <csignal>

#include "base/log.h"

namespace playfs::runtime {

void outlive_readers() { std::signal(SIGPIPE, SIG_IGN); }

void forgo_core_dumps() {
  const rlimit none{};
  if (setrlimit(RLIMIT_CORE, &none) != 0) log_warning("cannot disable core dumps");
}

void forgo_new_privileges() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) log_warning("cannot set no_new_privs");
}

void forgo_inspection() {
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
    log_warning("cannot protect the process from this user's other processes");
}

}  // namespace playfs::runtime
