// playfs login: gets an API key by email, and keeps it for the site.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "app/author.h"
#include "app/commands/commands.h"
#include "app/mounted.h"
#include "app/shown_progress.h"
#include "base/shell.h"
#include "runtime/account_service.h"
#include "runtime/credentials.h"
#include "runtime/mount_options.h"

namespace playfs::app {

namespace {

constexpr std::size_t kLongestAnswer = 254;
constexpr int kTries = 3;

/// One line from stdin without blanks around it; nullopt at its end. A longer line is cut, and then refused.
std::optional<std::string> read_line(runtime::Io& io) {
  std::string line;
  for (int c = io.in.get(); c != std::char_traits<char>::eof(); c = io.in.get()) {
    if (c == '\n') return std::string(trim(line, " \t\r"));
    if (line.size() <= kLongestAnswer) line += static_cast<char>(c);
  }
  return line.empty() ? std::nullopt : std::optional(std::string(trim(line, " \t\r")));
}

std::optional<std::string> ask(runtime::Io& io, const char* what) {
  if (io.in_is_terminal) io.err << what << ": " << std::flush;
  return read_line(io);
}

Status check_email(const std::string& email) {
  const auto at = email.find('@');
  const bool plain = std::all_of(email.begin(), email.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (plain && email.size() <= kLongestAnswer && at != std::string::npos && at > 0 && at + 1 < email.size()) return {};
  return fail(ErrorCode::invalid_argument, "'" + email + "' is not an email address", "playfs login ada@example.org");
}

class LoginAttempt {
 public:
  LoginAttempt(CommandContext& context, const LoginArguments& arguments, runtime::Source site, std::string email,
               runtime::AccountService service)
      : context_(context),
        arguments_(arguments),
        site_(std::move(site)),
        email_(std::move(email)),
        service_(std::move(service)) {}

  Result<ExitCode> run() {
    if (!arguments_.code) PLAYFS_CHECK(request_code());
    auto key = key_for_code();
    if (!key) return fail(std::move(key).error());
    if (!*key) return tell_pending();
    return keep(**key);
  }

 private:
  [[nodiscard]] std::string again(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--site", site_.text});
    if (arguments_.agent) more.insert(more.end(), {"--agent", *arguments_.agent});
    if (arguments_.account_url) more.insert(more.end(), {"--account-url", *arguments_.account_url});
    return shell_line({{"playfs", "login"}, {email_}, std::move(more)});
  }

  /// On a terminal, says how long it still waits for `what`.
  [[nodiscard]] ShownProgress waiting_for(std::string what) const {
    return {
        context_.out, kLookAtWaitEvery,
        [&clock = context_.io.clock, since = context_.io.clock.steady(), site = site_.text, what = std::move(what)] {
          const std::chrono::nanoseconds waited = clock.steady() - since;
          return words_for_wait(site, what, waited, net::Deadline().total - waited);
        }};
  }

  Status request_code() {
    auto requested = [&] {
      const ShownProgress waiting = waiting_for("the request for a code");
      return service_.request_code(email_);
    };
    PLAYFS_TRY(const auto expires, requested());
    // A service may count on a code that it mailed lately.
    context_.out.note("A code is on its way to " + safe(email_) + ", or arrived within the last minutes" +
                      (expires ? "; it is valid until " + format_iso8601(*expires) : "") + ".");
    return {};
  }

  /// nullopt if no code was entered.
  Result<std::optional<runtime::AccountService::NewKey>> key_for_code() {
    const bool given = arguments_.code && *arguments_.code != "-";
    if (!given && context_.io.in_is_terminal)
      context_.out.note("Type the code from the mail, or Ctrl-D to enter it later.");
    Error refused;
    for (int tries = 0; tries < (given ? 1 : kTries); ++tries) {
      auto code = given ? arguments_.code : ask(context_.io, "Code");
      if (!code || code->empty()) break;
      auto verified = [&] {
        const ShownProgress waiting = waiting_for("the code");
        return service_.verify_code(email_, *code);
      };
      auto key = verified();
      if (key) return std::optional(std::move(*key));
      refused = std::move(key).error();
      if (refused.code != ErrorCode::unauthorized) {
        if (traits_of(refused.code).reached == Reached::silence) refused.message += "; the code may have been used up";
        if (refused.hint.empty()) refused.hint = again();
        return fail(std::move(refused));
      }
      if (context_.io.in_is_terminal && !given && tries + 1 < kTries) context_.out.note("That code is wrong.");
    }
    if (refused.message.empty()) return std::optional<runtime::AccountService::NewKey>();
    refused.hint = again();
    return fail(std::move(refused));
  }

  ExitCode tell_pending() {
    const std::string next = again({"--code", "CODE"});
    context_.out.note("No code was entered. Once it has arrived: " + safe(next));
    context_.out.document(JsonObject{{"site", site_.text}, {"signed_in", false}, {"email", email_}, {"next", next}});
    return ExitCode::pending;
  }

  Result<ExitCode> keep(const runtime::AccountService::NewKey& key) {
    runtime::Login login{key.api_key, email_, arguments_.agent.value_or("")};
    // The same person keeps the handle of an earlier login.
    auto earlier = runtime::login_at(site_, context_.places);
    if (!arguments_.agent && earlier && *earlier && (*earlier)->email == email_) login.agent = (*earlier)->agent;
    if (auto stored = runtime::store_login(site_, context_.places, login); !stored)
      return fail(stored.error().while_doing("signed in, but the key could not be kept"));

    context_.out.note("Signed in as " + safe(email_) + " at " + site_.text +
                      (key.is_new_user ? ", a new account" : "") + ". The key is in " +
                      safe(runtime::credentials_path(context_.places)) + ".");
    const Author author = author_here(context_, site_.text).value_or(author_at(context_, site_.text));
    context_.out.note("You write as '" + safe(author.handle) + "'. Try: " + safe(context_.next_command({{"whoami"}})));
    if (is_mounted())
      context_.out.note("Mounts of " + site_.text + " with these settings write with this key within " +
                        std::to_string(runtime::kKeyTakenUp.count()) + " s; what was written before has no owner.");
    tell_mounts_agent(author);
    context_.out.document(JsonObject{{"site", site_.text},
                                     {"signed_in", true},
                                     {"email", email_},
                                     {"new_account", key.is_new_user},
                                     {"agent", author.handle},
                                     {"agent_from", name_of(author.origin)},
                                     {"credentials", runtime::credentials_path(context_.places)}});
    return ExitCode::done;
  }

  /// Programs that write files of the mount around the working directory still write as before.
  void tell_mounts_agent(const Author& author) const {
    auto around = mount_around(context_, site_.text);
    if (!around || !*around) return;
    auto of_mount = author_of_mount(**around);
    if (!of_mount || of_mount->handle == author.handle) return;
    const std::string& directory = (*around)->mount_point;
    context_.out.note("What programs write to files of this mount (commit, reply, new) is still by '" +
                      safe(of_mount->handle) + "', until it is mounted anew:\n" +
                      safe(shell_line({{"playfs", "umount"}, {directory}}) + " && " +
                           shell_line({{"playfs", "mount"},
                                       {site_.text, directory},
                                       {"-o", runtime::mount_option("agent", author.handle)}})));
  }

  [[nodiscard]] bool is_mounted() const {
    auto table = read_mount_table();
    return table && std::any_of(table->begin(), table->end(), [&](const runtime::MountEntry& mount) {
             return mount.type == kMountType && mount.source == site_.text;
           });
  }

  CommandContext& context_;
  const LoginArguments& arguments_;
  const runtime::Source site_;
  const std::string email_;
  runtime::AccountService service_;
};

}  // namespace

Result<ExitCode> login(CommandContext& context, const LoginArguments& arguments) {
  PLAYFS_TRY(runtime::Source site, context.source(Marks::do_not_count));
  if (arguments.agent) PLAYFS_CHECK(check_handle(*arguments.agent));
  if (site.kind == runtime::Source::Kind::embedded) {
    context.out.note(safe(site.text) + " is a playground on this disk: it has no accounts and needs no login.");
    context.out.document(JsonObject{{"site", site.text}, {"signed_in", false}});
    return ExitCode::done;
  }
  if (arguments.account_url)
    PLAYFS_CHECK(context.settings.set(runtime::Settings::Layer::flag, "account_url", *arguments.account_url));
  PLAYFS_TRY(runtime::Source account, runtime::account_service_of(site, context.settings, context.places, context.io));
  if (context.settings.flag("offline", site.text))
    return fail(ErrorCode::offline, "signing in needs the network, and this is offline",
                "PLAYFS_OFFLINE=no playfs login");
  // Before a code is sent for nothing.
  PLAYFS_CHECK(runtime::prepare_to_store(context.places));
  std::string email = arguments.email;
  if (email.empty() && context.io.in_is_terminal) {
    context.out.note("Type the email address of your account at " + safe(account.text) + ", or Ctrl-D to stop.");
    email = ask(context.io, "Email").value_or("");
  }
  if (email.empty())
    return fail(ErrorCode::invalid_argument, "login needs the email address of the account",
                "playfs login ada@example.org");
  PLAYFS_CHECK(check_email(email));
  // Before a code is requested: whoever has it can sign in.
  context.out.note("Signing in at " + safe(site.text) +
                   (account.text == site.text ? "" : ", by the account service " + safe(account.text)) + ".");
  PLAYFS_TRY(auto transport, runtime::open_transport(account, context.settings));
  return LoginAttempt(context, arguments, std::move(site), std::move(email),
                      runtime::AccountService(std::move(transport), context.io.clock))
      .run();
}

}  // namespace playfs::app
