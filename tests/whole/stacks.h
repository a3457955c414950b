// Switches stacks and tells the sanitizers, which otherwise take all fibers for one.
#pragma once

#include <ucontext.h>

#include <cstddef>

namespace playfs::sim {

/// A place where code can resume. For one thread; not movable, since contexts contain pointers into themselves.
class Stack {
 public:
  /// The thread's own stack, as it leaves it.
  Stack();
  /// A new stack on which `run(argument)` begins. `run` must not return, and must first call arrived_from(). The memory
  /// is never freed.
  Stack(void (*run)(void*), void* argument);
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  /// Switches from this stack to `there`; returns when something switches back.
  void go_to(Stack& there);
  /// Must be called first on a new stack; `before` is the stack on which go_to() was called.
  static void arrived_from(Stack& before);

 private:
  ucontext_t context_{};
  // For the sanitizers.
  [[maybe_unused]] const void* bottom_ = nullptr;
  [[maybe_unused]] std::size_t size_ = 0;
  [[maybe_unused]] void* known_as_ = nullptr;
};

}  // namespace playfs::sim
