#include "runtime/mount_table.h"

#include <algorithm>

namespace playfs::runtime {

namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
std::string unescape(std::string_view field) {
  std::string text;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 3 < field.size()) {
      text += static_cast<char>((field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 + (field[i + 3] - '0'));
      i += 3;
    } else {
      text += field[i];
    }
  }
  return text;
}

}  // namespace

std::vector<MountEntry> parse_mount_table(std::string_view text) {
  std::vector<MountEntry> table;
  for (std::string_view line : split(text, '\n')) {
    // 36 35 98:0 ROOT MOUNT_POINT options optional… - TYPE SOURCE super_options
    const auto fields = split(line, ' ');
    if (fields.size() < 6) continue;
    const auto separator = std::find(fields.begin() + 6, fields.end(), "-");
    if (fields.end() - separator < 3) continue;
    const std::string_view super_options = fields.end() - separator > 3 ? separator[3] : std::string_view();
    table.push_back({unescape(fields[4]), unescape(fields[3]), unescape(separator[1]), unescape(separator[2]),
                     std::string(fields[2]), std::string(fields[5]), std::string(super_options)});
  }
  return table;
}

bool has_option(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    auto comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == item) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

bool is_within(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

const MountEntry* mount_holding(const std::vector<MountEntry>& table, std::string_view path) {
  const MountEntry* best = nullptr;
  for (const MountEntry& entry : table)
    if (is_within(path, entry.mount_point) && (best == nullptr || entry.mount_point.size() >= best->mount_point.size()))
      best = &entry;
  return best;
}

}  // namespace playfs::runtime
