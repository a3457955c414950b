#include "runtime/mount_options.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"

namespace playfs::runtime {

namespace {

/// Meant for mount(8), for the boot, or for the kernel, where this file system's behaviour is fixed: every mount has
/// default_permissions, nosuid and nodev, and reading never changes the access time.
constexpr std::array<std::string_view, 23> kIgnored{
    "rw",    "defaults", "_netdev",  "nofail",      "auto",       "noauto",   "user",      "nouser",
    "users", "owner",    "group",    "nosuid",      "nodev",      "suid",     "dev",       "default_permissions",
    "atime", "noatime",  "relatime", "strictatime", "nodiratime", "diratime", "norelatime"};

bool is_ignored(std::string_view name) {
  return std::find(kIgnored.begin(), kIgnored.end(), name) != kIgnored.end() || name.starts_with("x-") ||
         name.starts_with("X-") || name == "comment";
}

template <class T>
std::optional<T> parse_number(std::string_view text, int base) {
  T value = 0;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

const SettingName* find_setting(std::string_view name) {
  for (const SettingName& setting : setting_names())
    if (setting.name == name && name != "site" && name != "account_url") return &setting;
  return nullptr;
}

Status parse_one(std::string_view name, std::optional<std::string_view> value, MountOptions& options,
                 Settings& settings) {
  auto needs = [&](const char* what) {
    return fail(ErrorCode::invalid_argument, "the mount option " + std::string(name) + " needs " + what,
                "-o " + std::string(name) + "=…");
  };
  bool plain = !value.has_value();
  if (name == "ro" && plain) options.read_only = true;
  else if (name == "allow_other" && plain) options.allow_other = true;
  else if ((name == "exec" || name == "noexec") && plain) options.no_exec = name == "noexec";
  else if ((name == "sync" || name == "async") && plain) options.synchronous = name == "sync";
  else if (name == "nonempty" && plain) options.nonempty = true;
  else if (name == "safe_symlinks" && plain) options.safe_symlinks = true;
  else if (name == "project" || name == "revision") {
    if (!value || value->empty()) return needs("an id");
    (name == "project" ? options.project : options.revision) = std::string(*value);
  } else if (name == "uid") {
    if (!value || !(options.uid = parse_number<uid_t>(*value, 10))) return needs("a user's number");
  } else if (name == "gid") {
    if (!value || !(options.gid = parse_number<gid_t>(*value, 10))) return needs("a group's number");
  } else if (name == "umask") {
    if (!value || !(options.umask = parse_number<mode_t>(*value, 8)) || *options.umask > 0777)
      return needs("an octal number up to 777");
  } else if (const SettingName* setting = find_setting(name)) {
    if (!value && setting->kind != SettingKind::flag) return needs("a value");
    // A flag may stand alone: `-o offline`.
    PLAYFS_CHECK(settings.set(Settings::Layer::flag, name, std::string(value.value_or("yes"))));
  } else if (!is_ignored(name)) {
    return fail(ErrorCode::invalid_argument, "unknown mount option '" + std::string(name) + "'", "playfs mount --help");
  }
  return {};
}

/// Removes and returns the text up to the next comma without a backslash.
std::string take_item(std::string_view& list) {
  std::string item;
  std::size_t at = 0;
  for (; at < list.size() && list[at] != ','; ++at) {
    if (list[at] == '\\' && at + 1 < list.size()) ++at;
    item += list[at];
  }
  list.remove_prefix(std::min(at + 1, list.size()));
  return item;
}

}  // namespace

Status parse_mount_options(std::string_view list, MountOptions& options, Settings& settings) {
  while (!list.empty()) {
    const std::string item = take_item(list);
    if (item.empty()) continue;
    auto equals = item.find('=');
    std::optional<std::string_view> value;
    if (equals != std::string::npos) value = std::string_view(item).substr(equals + 1);
    PLAYFS_CHECK(parse_one(std::string_view(item).substr(0, equals), value, options, settings));
  }
  if (options.revision && !options.project)
    return fail(ErrorCode::invalid_argument, "the mount option revision needs project as well",
                "-o project=ID,revision=REV");
  if (options.allow_other) options.safe_symlinks = true;
  return {};
}

std::string mount_option(std::string_view name, std::string_view value) {
  return std::string(name) + '=' + escape_for_mount(value);
}

}  // namespace playfs::runtime
