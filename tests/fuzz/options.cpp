// Mount options: two fields, a list, and a value chosen by a service. What was read is written and read back the same,
// and no value becomes another option.
#include "runtime/mount_options.h"

#include <fmt/format.h>

#include "fuzz.h"

using namespace playfs;
using namespace playfs::runtime;

namespace {

std::string print(const MountOptions& options, const Settings& settings) {
  std::string list;
  auto add = [&](const std::string& item) { list += (list.empty() ? "" : ",") + item; };
  if (options.project) add(mount_option("project", *options.project));
  if (options.revision) add(mount_option("revision", *options.revision));
  if (options.read_only) add("ro");
  if (options.allow_other) add("allow_other");
  if (options.safe_symlinks) add("safe_symlinks");
  if (options.no_exec) add("noexec");
  if (options.synchronous) add("sync");
  if (options.nonempty) add("nonempty");
  if (options.uid) add(fmt::format("uid={}", *options.uid));
  if (options.gid) add(fmt::format("gid={}", *options.gid));
  if (options.umask) add(fmt::format("umask={:o}", *options.umask));
  for (const auto& setting : setting_names())
    if (auto value = settings.text_of(Settings::Layer::flag, setting.name)) add(mount_option(setting.name, *value));
  return list;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::string list(input.field()), chosen(input.rest());
  MountOptions options;
  Settings settings;
  auto read = parse_mount_options(list, options, settings);
  FUZZ_CHECK(read || (read.error().code == ErrorCode::invalid_argument && !read.error().message.empty()));
  if (!read) return 0;
  FUZZ_CHECK(!options.revision || options.project);
  FUZZ_CHECK(!options.allow_other || options.safe_symlinks);
  FUZZ_CHECK(options.umask.value_or(0) <= 0777);
  const std::string printed = print(options, settings);
  MountOptions again;
  Settings settings_again;
  FUZZ_CHECK(parse_mount_options(printed, again, settings_again));
  FUZZ_CHECK(print(again, settings_again) == printed);

  if (chosen.empty() || list.ends_with('\\')) return 0;
  again = {};
  settings_again = {};
  FUZZ_CHECK(parse_mount_options(list + "," + mount_option("project", chosen), again, settings_again));
  FUZZ_CHECK(again.project == chosen);
  options.project = chosen;
  FUZZ_CHECK(print(again, settings_again) == print(options, settings));
  return 0;
}
