// playfs whoami: under which handle this user writes here, and how that was determined.
#include <algorithm>
#include <optional>
#include <utility>

#include "app/author.h"
#include "app/commands/commands.h"
#include "app/mounted.h"
#include "base/await.h"
#include "content/names.h"
#include "runtime/credentials.h"
#include "vfs/control/control_text.h"

namespace playfs::app {

namespace {

/// What the site's agents collection says about a handle.
struct Registration {
  std::string id = {};
  std::optional<WallTime> since = {};
  std::optional<Error> unknown = {};  ///< why it could not be looked up; with an id: that is as last seen
};

/// What the site says about the stored key.
struct KeyCheck {
  std::optional<bool> is_valid = {};  ///< nullopt: the site did not answer, or does not tell
  Error why = {};                     ///< unless it is valid
  std::string email = {};             ///< of its account, if the site tells
};

/// How long to wait for a service that sends nothing: the author is known without it.
constexpr std::chrono::seconds kPatience{10};

/// The service's answer. Fails if nothing has come from the service for kPatience, counted from `asked` or from its
/// last answer, whichever is later.
template <class T, class Start>
Result<T> answered(runtime::ClientStack& stack, SteadyTime asked, const Start& start) {
  auto left = [&] {
    return std::max(asked, stack.site().patience().answered_at()) + kPatience - stack.clock().steady();
  };
  if (auto answer = await_while<T>(left, start)) return std::move(*answer);
  return fail(ErrorCode::timed_out, stack.source().text + " does not answer", "try again later");
}

KeyCheck check_key(runtime::ClientStack& stack, SteadyTime asked) {
  auto holder = answered<remote::KeyHolder>(stack, asked, [&](CancelToken cancel, auto done) {
    stack.client().get_key_holder(std::move(cancel), std::move(done));
  });
  if (holder) return {true, {}, std::move(holder->email)};
  const bool is_refused = holder.error().code == ErrorCode::unauthorized;
  return {is_refused ? std::optional(false) : std::nullopt, std::move(holder).error()};
}

/// If several agents carry the handle, the one that owns it counts, as in agents/.
Registration registration_of(const CommandContext& context, runtime::ClientStack& stack, SteadyTime asked,
                             const std::string& handle) {
  content::Site& content = stack.site();
  auto list = answered<content::ListPtr>(
      stack, asked, [&](CancelToken cancel, auto done) { content.list("agents", std::move(cancel), std::move(done)); });
  std::optional<Error> silence;
  if (!list && list.error().code == ErrorCode::timed_out) {
    silence = list.error();
    if (auto stored = content.try_list("agents")) list = std::move(stored);
  }
  if (!list) return {.unknown = list.error()};
  Registration found;
  if (const content::Listed* agent = content::holder_of(**list, handle)) found = {agent->id, agent->named_at, {}};
  const remote::Health health = stack.client().health();
  if (silence) found.unknown = std::move(silence);
  else if (context.settings.flag("offline", stack.source().text))
    found.unknown = Error{ErrorCode::offline, "this is offline"};
  else if (!health.reachable) found.unknown = Error{ErrorCode::unreachable, health.last_error};
  else if (!content.is_list_whole("agents"))
    found.unknown = Error{ErrorCode::not_found, "not all agents of this site are listed"};
  return found;
}

std::string words_for(AuthorOrigin origin) {
  switch (origin) {
    case AuthorOrigin::flag: return "--agent";
    case AuthorOrigin::environment: return "PLAYFS_AGENT";
    case AuthorOrigin::config: return "config.toml";
    case AuthorOrigin::mount: return "the agent of this mount";
    case AuthorOrigin::login: return "playfs login --agent";
    case AuthorOrigin::system: return "the user's name on this machine";
  }
  return "";
}

std::string words_for(const Registration& found, const runtime::Source& site) {
  std::string words;
  if (!found.id.empty()) words = "since " + format_iso8601(*found.since) + " (agents/" + safe(found.id) + ")";
  else if (!found.unknown) words = "no, " + safe(site.text) + " has no agent of that handle";
  else words = "unknown";
  if (found.unknown) words += (found.id.empty() ? ": " : ", as last seen: ") + safe(found.unknown->message);
  return words;
}

JsonObject document_of(const Registration& found) {
  JsonObject fields{{"id", found.id.empty() ? Json() : Json(found.id)},
                    {"since", found.since ? Json(format_iso8601(*found.since)) : Json()},
                    {"checked", !found.unknown}};
  if (found.unknown) fields.append("error", vfs::error_json(*found.unknown));
  return fields;
}

/// What entitles this user to write as this author.
struct Basis {
  std::optional<runtime::Login> login = {};
  KeyCheck key = {};  ///< of a login

  [[nodiscard]] bool is_refused() const { return login && key.is_valid == false; }
  [[nodiscard]] const std::string& email() const { return key.email.empty() ? login->email : key.email; }
};

std::string words_for(const Basis& basis, const CommandContext& context, const runtime::Source& site) {
  const std::string indent = "\n            ";
  if (!basis.login) return "a claim: anyone can use this handle";
  const std::string& email = basis.email();
  if (basis.is_refused()) {
    ShellCommand again{{"login"}};
    if (!email.empty()) again.operands.push_back(email);
    return "nothing: " + safe(site.text) + " refuses the key that is kept here" +
           (email.empty() ? "" : " for " + safe(email)) + ":" + indent + safe(basis.key.why.message) + indent +
           "Until there is a new one, what you write here is refused: " + safe(context.next_command(std::move(again)));
  }
  std::string words = "signed in as " + (email.empty() ? "the owner of a key" : safe(email)) + " at " +
                      safe(site.text) + ":" + indent + "what you write belongs to that account; the handle is a claim";
  if (basis.key.is_valid) return words;
  return words + indent + "The key was not checked: " + safe(basis.key.why.message);
}

Json document_of(const Basis& basis) {
  if (!basis.login) return {};
  JsonObject fields{{"checked", basis.key.is_valid.has_value()},
                    {"valid", basis.key.is_valid ? Json(*basis.key.is_valid) : Json()}};
  if (basis.key.is_valid != true) fields.append("error", vfs::error_json(basis.key.why));
  return fields;
}

}  // namespace

Result<ExitCode> whoami(CommandContext& context, const WhoamiArguments& arguments) {
  if (arguments.agent) {
    PLAYFS_CHECK(check_handle(*arguments.agent));
    PLAYFS_CHECK(context.settings.set(runtime::Settings::Layer::flag, "agent", *arguments.agent));
  }
  PLAYFS_TRY(runtime::Source site, context.source(Marks::do_not_count));
  Basis basis;
  PLAYFS_TRY(basis.login, runtime::login_at(site, context.places));
  // --site means that service, whatever the enclosing mount is of.
  PLAYFS_TRY(const Author author, author_here(context, site.text));
  std::optional<MountedPlace> place;
  if (auto around = mount_around(context, site.text)) place = std::move(*around);
  std::optional<Author> of_mount;
  if (place)
    if (auto known = author_of_mount(*place)) of_mount = std::move(*known);
  Registration found;
  if (auto stack = context.open_client_stack(site)) {
    const SteadyTime asked = (*stack)->clock().steady();
    if (basis.login) basis.key = check_key(**stack, asked);
    found = registration_of(context, **stack, asked, author.handle);
  } else {
    basis.key.why = stack.error();
    found.unknown = stack.error();
  }

  Output& out = context.out;
  out.line("agent       " + safe(author.handle));
  out.line("from        " + words_for(author.origin));
  out.line("site        " + safe(site.text));
  out.line("rests on    " + words_for(basis, context, site));
  out.line("registered  " + words_for(found, site));
  const bool mount_differs = of_mount && of_mount->handle != author.handle;
  if (mount_differs)
    out.line("this mount  writes as " + safe(of_mount->handle) +
             " where programs write its files (commit, reply, new)");

  JsonObject document{{"site", site.text},
                      {"agent", author.handle},
                      {"agent_from", name_of(author.origin)},
                      {"rests_on", basis.is_refused() ? "nothing"
                                   : basis.login      ? "account"
                                                      : "claim"},
                      {"email", basis.login && !basis.email().empty() ? Json(basis.email()) : Json()},
                      {"key", document_of(basis)},
                      {"registered", document_of(found)}};
  if (of_mount)
    document.append("mount", JsonObject{{"directory", place->mount_point},
                                        {"agent", of_mount->handle},
                                        {"agent_from", name_of(of_mount->origin)}});
  out.document(std::move(document));
  return ExitCode::done;
}

}  // namespace playfs::app
