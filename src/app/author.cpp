#include "app/author.h"

#include <playfs/ioctl.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "app/command_context.h"
#include "app/json_fields.h"
#include "base/text.h"
#include "runtime/credentials.h"

namespace playfs::app {

namespace {

constexpr std::array<std::pair<AuthorOrigin, std::string_view>, 6> kOrigins{{{AuthorOrigin::flag, "flag"},
                                                                             {AuthorOrigin::environment, "environment"},
                                                                             {AuthorOrigin::config, "config"},
                                                                             {AuthorOrigin::mount, "mount"},
                                                                             {AuthorOrigin::login, "login"},
                                                                             {AuthorOrigin::system, "system"}}};

AuthorOrigin origin_of(runtime::Settings::Layer layer) {
  using Layer = runtime::Settings::Layer;
  switch (layer) {
    case Layer::flag: return AuthorOrigin::flag;
    case Layer::environment: return AuthorOrigin::environment;
    case Layer::user:
    case Layer::system: return AuthorOrigin::config;
  }
  return AuthorOrigin::config;
}

std::string user_name(const CommandContext& context) {
  if (auto login = context.io.variable("LOGNAME")) return *login;
  if (const passwd* entry = getpwuid(geteuid()); entry != nullptr && entry->pw_name != nullptr) return entry->pw_name;
  return "uid" + std::to_string(geteuid());
}

/// Empty if none was chosen, or if the file of keys is refused: the error is reported where a key is needed.
std::string handle_of_login(const CommandContext& context, const std::string& site) {
  auto source = context.source(site);
  if (!source) return {};
  auto login = runtime::login_at(*source, context.places);
  return login && *login ? std::move((*login)->agent) : std::string();
}

}  // namespace

std::string_view name_of(AuthorOrigin origin) {
  for (const auto& [known, name] : kOrigins)
    if (known == origin) return name;
  return "system";
}

Author author_at(const CommandContext& context, const std::string& site) {
  if (auto configured = context.settings.setting("agent", site))
    return {std::move(configured->value), origin_of(configured->layer)};
  if (std::string handle = handle_of_login(context, site); !handle.empty())
    return {std::move(handle), AuthorOrigin::login};
  return {user_name(context), AuthorOrigin::system};
}

Result<Author> author_of_mount(const MountedPlace& place) {
  PLAYFS_TRY(JsonObject status, read_json_object(place.mount_point + "/.playfs/status.json"));
  // A mount of an older version does not say where its agent comes from; it may have been given explicitly.
  Author author{text_of(status, "agent"), AuthorOrigin::flag};
  const std::string from = text_of(status, "agent_from");
  for (const auto& [origin, name] : kOrigins)
    if (name == from) author.origin = origin;
  return author;
}

Result<Author> author_in(const CommandContext& context, const MountedPlace& place) {
  Author own = author_at(context, place.source);
  if (own.is_configured() || place.clone) return own;
  auto of_mount = author_of_mount(place);
  if (!of_mount)
    return fail(of_mount.error().while_doing("the mount at " + place.mount_point + " does not say who writes here"));
  // A mount's fallback may be another user's name, or predate a login, so it does not count.
  if (!of_mount->is_configured()) return own;
  return Author{std::move(of_mount->handle), AuthorOrigin::mount};
}

Result<std::optional<MountedPlace>> mount_around(const CommandContext& context, const std::string& site) {
  auto around = find_mount(context.io.directory);
  if (!around && around.error().code == ErrorCode::timed_out) return around;
  if (!around || !*around || (*around)->source != site) return std::optional<MountedPlace>();
  return around;
}

Result<Author> author_here(const CommandContext& context, const std::string& site) {
  Author own = author_at(context, site);
  if (own.is_configured()) return own;
  PLAYFS_TRY(const auto around, mount_around(context, site));
  return around ? author_in(context, *around) : std::move(own);
}

std::string author_of(const CommandContext& context, const MountedPlace& place) {
  auto author = author_in(context, place);
  return author ? std::move(author->handle) : "";
}

Status check_handle(const std::string& handle) {
  const char* example = "a short name, such as ada";
  if (handle.empty()) return fail(ErrorCode::invalid_argument, "a handle cannot be empty", example);
  if (handle.size() >= PLAYFS_AGENT_MAX)
    return fail(ErrorCode::invalid_argument,
                "the handle is longer than " + std::to_string(PLAYFS_AGENT_MAX - 1) + " bytes", example);
  if (!is_valid_utf8(handle) || escape_for_terminal(handle) != handle)
    return fail(ErrorCode::invalid_argument, "the handle has characters that cannot be shown", example);
  return {};
}

}  // namespace playfs::app
