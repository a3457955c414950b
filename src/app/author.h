// Who writes: the handle under which commits, posts and mail appear, and where it comes from. Blocking; no shared
// state.
//
// A handle is a claim: the service lets anyone write under any. So the last resort is the handle that was chosen at
// login, or else the user's name on this machine, and never a part of the email address, which is private.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/mounted.h"
#include "base/result.h"
#include "runtime/config.h"
#include "runtime/places.h"
#include "runtime/source.h"

namespace playfs::app {

struct CommandContext;

/// Strongest first.
enum class AuthorOrigin {
  flag,         ///< --agent, or the mount's agent=
  environment,  ///< PLAYFS_AGENT
  config,
  mount,   ///< the agent that the mount was made with
  login,   ///< `playfs login --agent`
  system,  ///< the user's name on this machine
};

/// As in JSON documents: "flag", "environment" …
std::string_view name_of(AuthorOrigin origin);

struct Author {
  std::string handle;
  AuthorOrigin origin = AuthorOrigin::system;

  /// Whether it was set explicitly, and so overrides a mount's fallback.
  [[nodiscard]] bool is_configured() const { return origin <= AuthorOrigin::config; }
};

/// The author of what is written to this service (Source::text) outside its mounts.
Author author_at(const CommandContext& context, const std::string& site);

/// A mount's default agent, from its status.json. `origin` is as seen by the mount's own process.
Result<Author> author_of_mount(const MountedPlace& place);

/// The author of what this user writes through that mount, or in that clone. Errors: the mount does not say its agent,
/// and nothing stronger is set.
Result<Author> author_in(const CommandContext& context, const MountedPlace& place);

/// The mount around the working directory, if it is of this service. Errors: timed_out if it does not answer.
Result<std::optional<MountedPlace>> mount_around(const CommandContext& context, const std::string& site);

/// The author of what a command writes to this service: author_in() if the working directory is in a mount of the
/// service, else author_at(). Errors: as author_in(): if the mount does not answer, nothing may be written under
/// another name.
Result<Author> author_here(const CommandContext& context, const std::string& site);

/// The author to commit under in a work tree. Empty: the mount's default, if the mount does not say what that is.
std::string author_of(const CommandContext& context, const MountedPlace& place);

/// Whether a text can be a handle here. Errors: invalid_argument, saying why not.
Status check_handle(const std::string& handle);

}  // namespace playfs::app
