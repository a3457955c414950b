// Decides which texts of a report are shown, by an allow-list: a text stays if its field is known to hold a word of
// playfs's own, and it has the form of one. Any other text becomes a stand-in, "TEXT-1", which says only where the same
// text occurs again. Numbers, true, false and null stay.
//
// Pure, for one thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "model/json.h"

namespace playfs::app {

class ShownWords {
 public:
  /// `field`: the name of the member that holds `value`; that of an array counts for its elements.
  [[nodiscard]] Json of(const Json& value, std::string_view field = {});

 private:
  [[nodiscard]] std::string stand_in(const std::string& text);

  std::map<std::string, std::string> stand_ins_;
};

}  // namespace playfs::app
