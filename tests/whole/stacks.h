// Goes from one stack to another, and tells the sanitizers, which otherwise take all fibers for one.
#pragma once

#include <ucontext.h>

#include <cstddef>

namespace playfs::sim {

/// A place where code can go on. For one thread; not moved, since contexts point into themselves.
class Stack {
 public:
  /// That of the thread: where it went from.
  Stack();
  /// A new one on which `run(argument)` begins. It must not return, and starts with arrived_from(). Its memory is never
  /// given back.
  Stack(void (*run)(void*), void* argument);
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  /// From here to there, until somebody goes back.
  void go_to(Stack& there);
  /// The first thing on a new stack: `before` is where its first go_to() was called.
  static void arrived_from(Stack& before);

 private:
  ucontext_t context_{};
  // For the sanitizers.
  [[maybe_unused]] const void* bottom_ = nullptr;
  [[maybe_unused]] std::size_t size_ = 0;
  [[maybe_unused]] void* known_as_ = nullptr;
};

}  // namespace playfs::sim
