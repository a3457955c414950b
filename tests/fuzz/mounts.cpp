// The mount table: arbitrary text, then a mount with the input's fields, written as the kernel writes it.
#include "fuzz.h"
#include "runtime/mount_table.h"

using namespace playfs::runtime;

namespace {

std::string escaped(std::string_view text) {
  constexpr std::string_view digits = "01234567";
  std::string out;
  for (char c : text) {
    if (std::string_view(" \t\n\\#").find(c) == std::string_view::npos) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'\\', digits[byte >> 6], digits[byte >> 3 & 7], digits[byte & 7]};
  }
  return out;
}

std::string line_of(const MountEntry& entry) {
  return "36 35 " + entry.device + " " + escaped(entry.root) + " " + escaped(entry.mount_point) + " " + entry.options +
         " shared:1 master:2 - " + escaped(entry.type) + " " + escaped(entry.source) + " " + entry.super_options + "\n";
}

bool equal(const MountEntry& a, const MountEntry& b) {
  return a.mount_point == b.mount_point && a.root == b.root && a.type == b.type && a.source == b.source &&
         a.device == b.device && a.options == b.options && a.super_options == b.super_options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto table = parse_mount_table(as_text(data, size));
  FUZZ_CHECK(table.size() <= size / 8 + 1);
  for (const MountEntry& entry : table) {
    static_cast<void>(has_option(entry.options, "ro"));
    if (!entry.mount_point.starts_with('/')) continue;
    const MountEntry* holding = mount_holding(table, entry.mount_point);
    FUZZ_CHECK(holding && entry.mount_point.starts_with(holding->mount_point));
  }

  Input input(data, size);
  MountEntry entry;
  // Kernel paths are never empty and may contain any byte but NUL.
  for (std::string* field : {&entry.mount_point, &entry.root, &entry.source}) {
    *field = "/" + std::string(input.field());
    std::replace(field->begin(), field->end(), '\0', '0');
  }
  entry.type = "fuse.playfs";
  entry.device = "0:52";
  entry.options = "rw,nosuid";
  entry.super_options = "rw,user_id=0";
  const MountEntry other{"/", "/", "ext4", "/dev/sda1", "8:1", "rw", "rw"};
  const auto read = parse_mount_table(line_of(other) + line_of(entry) + line_of(other));
  FUZZ_CHECK(read.size() == 3 && equal(read[0], other) && equal(read[1], entry) && equal(read[2], other));
  return 0;
}
