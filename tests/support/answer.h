// What a callback was called with; more than one call fails the test.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "base/callback.h"
#include "base/result.h"

namespace playfs::test {

template <class T>
class Answer {
 public:
  Callback<T> callback() {
    return [state = state_](Result<T> result) {
      if (++state->calls > 1) ADD_FAILURE() << "answered twice";
      state->result.emplace(std::move(result));
    };
  }
  [[nodiscard]] int calls() const { return state_->calls; }
  [[nodiscard]] bool given() const { return calls() > 0; }
  [[nodiscard]] bool ok() const { return given() && state_->result->has_value(); }
  const T& operator*() const { return state_->result.value().value(); }
  const T* operator->() const { return &**this; }
  /// REQUIRES: given, and an error.
  [[nodiscard]] const Error& error() const { return state_->result->error(); }
  [[nodiscard]] std::optional<ErrorCode> code() const {
    return given() && !ok() ? std::optional(error().code) : std::nullopt;
  }
  [[nodiscard]] bool is(ErrorCode expected) const { return code() == expected; }

 private:
  struct State {
    int calls = 0;
    std::optional<Result<T>> result;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace playfs::test
