#include "runtime/places.h"

#include <pwd.h>
#include <unistd.h>

#include "model/content_hash.h"

namespace playfs::runtime {

namespace {

Result<std::string> home_of(const Io& io) {
  const auto home = io.variable("HOME");
  const bool is_set = home && home->front() == '/';
  // mount(8) leaves it unset for other users than root, and then mount.fuse sets it to root's.
  const bool is_roots = is_set && *home == "/root" && geteuid() != 0 && access("/root", W_OK | X_OK) != 0;
  if (is_set && !is_roots) return *home;
  if (const passwd* entry = getpwuid(geteuid()); entry != nullptr && entry->pw_dir != nullptr && *entry->pw_dir == '/')
    return std::string(entry->pw_dir);
  if (is_set) return *home;
  return fail(ErrorCode::not_found, "no home directory: HOME is not set, and the user database has none",
              "HOME=/some/directory playfs …");
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

}  // namespace

Result<Places> find_places(const Io& io) {
  std::string home;
  auto place = [&](const char* variable, const char* below_home) -> Result<std::string> {
    if (auto value = io.variable(variable); value && value->front() == '/') return io.absolute(*value) + "/playfs";
    if (home.empty()) {
      PLAYFS_TRY(home, home_of(io));
    }
    return io.absolute(home + "/" + below_home) + "/playfs";
  };
  Places places;
  PLAYFS_TRY(places.config, place("XDG_CONFIG_HOME", ".config"));
  PLAYFS_TRY(places.cache, place("XDG_CACHE_HOME", ".cache"));
  PLAYFS_TRY(places.state, place("XDG_STATE_HOME", ".local/state"));
  PLAYFS_TRY(places.data, place("XDG_DATA_HOME", ".local/share"));
  places.system_config = "/etc/playfs/config.toml";
  return places;
}

std::string Places::site_state(std::string_view site) const { return state + "/sites/" + as_component(site); }

std::string as_component(std::string_view text) {
  constexpr std::size_t longest = 60;
  bool plain = !text.empty() && text.size() <= longest && text.front() != '.';
  std::string readable;
  for (char c : text.substr(0, longest)) {
    if (!is_plain(c)) plain = false;
    readable += is_plain(c) ? c : '_';
  }
  // '+' is not a plain character, so no plain text can equal a hashed name.
  return plain ? readable : "h+" + ContentHash::of(text).hex().substr(0, 24) + "+" + readable;
}

}  // namespace playfs::runtime
