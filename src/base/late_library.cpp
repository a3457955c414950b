#include "base/late_library.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace playfs {

namespace {
/// As the shell says it of a command that cannot be run.
constexpr int kCannotRun = 127;

std::string last_problem() {
  const char* problem = dlerror();
  return problem ? problem : "unknown problem";
}
}  // namespace

Status LateLibrary::load() const {
  if (handle_.load(std::memory_order_acquire)) return {};
  // Two threads may both load it: that only counts its users.
  void* const handle = dlopen(name_, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return fail(ErrorCode::not_supported, last_problem(), install_command());
  handle_.store(handle, std::memory_order_release);
  return {};
}

std::string LateLibrary::install_command() const { return std::string("sudo apt install ") + package_; }

void* LateLibrary::symbol(const char* name) const {
  const Status loaded = load();
  void* const found = loaded ? dlsym(handle_.load(std::memory_order_acquire), name) : nullptr;
  if (found) return found;
  const Error why = loaded ? Error{ErrorCode::not_supported, last_problem(), install_command()} : loaded.error();
  std::fprintf(stderr, "playfs: %s\nTry: %s\n", why.message.c_str(), why.hint.c_str());
  std::_Exit(kCannotRun);
}

}  // namespace playfs
