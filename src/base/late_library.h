// Shared libraries that are loaded when one of their functions is first called. Most commands call none of them, and
// loading them, with all the libraries that they need, takes longer than what most commands do.
//
// A header of the module that uses such a library declares its functions in the module's namespace, under their own
// names, so that callers look as if they were linked with it. A library stays loaded. Thread-safe.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "base/result.h"

namespace playfs {

class LateLibrary {
 public:
  /// `name`: as the dynamic loader finds it, "libcurl.so.4"; `package`: Debian's, "libcurl4", and what else to install
  /// with it.
  constexpr LateLibrary(const char* name, const char* package) : name_(name), package_(package) {}
  LateLibrary(const LateLibrary&) = delete;
  LateLibrary& operator=(const LateLibrary&) = delete;

  /// For callers that can say why they fail. What runs on calls this at the beginning: later the library may have been
  /// replaced by another version.
  [[nodiscard]] Status load() const;
  /// Ends the process if there is none, as the dynamic loader does for a program that is linked with the library.
  [[nodiscard]] void* symbol(const char* name) const;

 private:
  [[nodiscard]] std::string install_command() const;

  const char* const name_;
  const char* const package_;
  mutable std::atomic<void*> handle_ = nullptr;
};

/// `Function` is the declared type: LateFunction<decltype(::curl_easy_init)>.
template <class Function>
class LateFunction {
 public:
  constexpr LateFunction(const LateLibrary& library, const char* name) : library_(library), name_(name) {}

  template <class... Arguments>
  auto operator()(Arguments&&... arguments) const {
    void* known = known_.load(std::memory_order_acquire);
    if (known == nullptr) known_.store(known = library_.symbol(name_), std::memory_order_release);
    return reinterpret_cast<Function*>(known)(std::forward<Arguments>(arguments)...);
  }

 private:
  const LateLibrary& library_;
  const char* const name_;
  mutable std::atomic<void*> known_ = nullptr;
};

}  // namespace playfs

// Declares one function of a library, in the namespace of those who call it.
#define PLAYFS_LATE(library, function) \
  inline constinit const ::playfs::LateFunction<decltype(::function)> function { library, #function }
