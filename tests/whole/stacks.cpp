#include "whole/stacks.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define PLAYFS_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#elif __has_feature(thread_sanitizer)
#define PLAYFS_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif
#endif

namespace playfs::sim {

namespace {

#if defined(PLAYFS_ADDRESS_SANITIZER)
constexpr std::size_t kSize = 8 << 20;  // AddressSanitizer spaces locals further apart
#else
constexpr std::size_t kSize = 1 << 20;
#endif

/// makecontext() passes 32-bit numbers.
void begin(unsigned run_high, unsigned run_low, unsigned high, unsigned low) {
  auto joined = [](unsigned a, unsigned b) { return (static_cast<std::uintptr_t>(a) << 32) | b; };
  reinterpret_cast<void (*)(void*)>(joined(run_high, run_low))(reinterpret_cast<void*>(joined(high, low)));
}

}  // namespace

Stack::Stack() {
#if defined(PLAYFS_THREAD_SANITIZER)
  known_as_ = __tsan_get_current_fiber();
#endif
}

Stack::Stack(void (*run)(void*), void* argument) : size_(kSize) {
  void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  bottom_ = memory;
  getcontext(&context_);
  context_.uc_stack.ss_sp = memory;
  context_.uc_stack.ss_size = kSize;
  auto function = reinterpret_cast<std::uintptr_t>(run), value = reinterpret_cast<std::uintptr_t>(argument);
  makecontext(&context_, reinterpret_cast<void (*)()>(&begin), 4, static_cast<unsigned>(function >> 32),
              static_cast<unsigned>(function), static_cast<unsigned>(value >> 32), static_cast<unsigned>(value));
#if defined(PLAYFS_THREAD_SANITIZER)
  known_as_ = __tsan_create_fiber(0);
#endif
}

void Stack::go_to(Stack& there) {
#if defined(PLAYFS_ADDRESS_SANITIZER)
  // Bypasses the sanitizer's own, which clears its knowledge of a whole stack each time.
  static auto* swap = reinterpret_cast<int (*)(ucontext_t*, const ucontext_t*)>(dlsym(RTLD_NEXT, "swapcontext"));
  __sanitizer_start_switch_fiber(&known_as_, there.bottom_, there.size_);
  swap(&context_, &there.context_);
  __sanitizer_finish_switch_fiber(known_as_, nullptr, nullptr);
#else
#if defined(PLAYFS_THREAD_SANITIZER)
  __tsan_switch_to_fiber(there.known_as_, 0);
#endif
  swapcontext(&context_, &there.context_);
#endif
}

void Stack::arrived_from([[maybe_unused]] Stack& before) {
#if defined(PLAYFS_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(nullptr, &before.bottom_, &before.size_);
#endif
}

}  // namespace playfs::sim
