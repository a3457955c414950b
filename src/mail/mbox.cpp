#include "mail/mbox.h"

#include <algorithm>
#include <ctime>

#include <fmt/chrono.h>

namespace playfs::mail {

std::string to_mboxrd(std::string_view text, std::string_view from, WallTime date) {
  const std::time_t seconds = date.seconds();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::string out = "From ";
  // The line's parts end at blanks.
  for (char c : from) out += c > ' ' && c < 0x7F ? c : '?';
  if (from.empty()) out += "unknown";
  out += fmt::format(" {:%a %b %e %H:%M:%S %Y}\n", parts);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::string_view unquoted = line.substr(std::min(line.find_first_not_of('>'), line.size()));
    if (unquoted.starts_with("From ")) out += '>';
    out += line;
    out += '\n';
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return out += '\n';
}

}  // namespace playfs::mail
