#include "base/program_path.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace playfs {

bool is_in_path(const std::string& program) {
  const char* path = getenv("PATH");
  for (std::string_view left = path != nullptr ? path : ""; !left.empty();) {
    const auto end = std::min(left.find(':'), left.size());
    if (access((std::string(left.substr(0, end)) + "/" + program).c_str(), F_OK) == 0) return true;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return false;
}

}  // namespace playfs
