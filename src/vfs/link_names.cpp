#include "vfs/link_names.h"

#include "base/text.h"
#include "model/path.h"

namespace playfs::vfs {

std::string link_name(const std::string& title) {
  std::string name;
  for (std::string_view rest = title; !rest.empty();) {
    const std::string_view next = rest.substr(0, first_code_point(rest).length);
    if (next.empty()) return {};
    name += next == "/" || !is_shown_as_it_is(next) ? "_" : next;
    rest.remove_prefix(next.size());
  }
  return why_not_a_component(name) ? std::string() : name;
}

bool is_shown_as_it_is(std::string_view name) { return escape_for_terminal(name) == name; }

}  // namespace playfs::vfs
