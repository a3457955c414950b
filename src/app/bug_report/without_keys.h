// Takes the keys that this user keeps, and what follows "Bearer ", out of texts that are otherwise shown as they are.
//
// Pure, for one thread.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/json.h"

namespace playfs::app {

class WithoutKeys {
 public:
  /// `kept`: as runtime::kept_secrets() returns it.
  explicit WithoutKeys(const std::vector<std::string>& kept);

  [[nodiscard]] std::string text(std::string_view text) const;
  /// All texts in it.
  [[nodiscard]] Json json(const Json& value) const;

 private:
  void take_out(const std::string& value);

  std::set<std::string, std::less<>> values_;
  std::set<std::size_t, std::greater<>> sizes_;  ///< of values_, so that a longer value goes before a part of it
};

}  // namespace playfs::app
