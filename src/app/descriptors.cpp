#include "app/descriptors.h"

#include <sys/resource.h>

#include "base/log.h"

namespace playfs::app {

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) log_warning("the limit of open descriptors cannot be raised");
}

}  // namespace playfs::app
