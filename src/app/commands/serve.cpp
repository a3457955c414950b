// playfs serve: serves the Data API on a port, over a playground on this disk or in a database.
#include <malloc.h>

#include <charconv>

#include "app/commands/commands.h"
#include "compare/text_diff.h"
#include "runtime/descriptors.h"
#include "runtime/hardening.h"
#include "runtime/secret_file.h"
#include "runtime/service_manager.h"
#include "runtime/signals.h"
#include "runtime/site_server.h"
#include "service/site_hosts.h"

namespace playfs::app {

namespace {

constexpr std::size_t kLargestLimits = 64 * 1024;

struct Listen {
  std::string address;
  std::uint16_t port = 0;
};

Result<Listen> parse_listen(const std::string& text) {
  auto bad = [&] {
    return fail(ErrorCode::invalid_argument, "--listen " + text + ": not ADDRESS:PORT", "--listen 127.0.0.1:8787");
  };
  Listen listen;
  auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return bad();
  listen.address = text.substr(0, colon);
  if (listen.address.size() > 2 && listen.address.front() == '[' && listen.address.back() == ']')
    listen.address = listen.address.substr(1, listen.address.size() - 2);
  if (listen.address == "localhost") listen.address = "127.0.0.1";
  const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(begin, end, listen.port);
  if (begin == end || error != std::errc() || stop != end) return bad();
  return listen;
}

Result<service::Limits> limits_of(const CommandContext& context, const std::string& limits) {
  if (limits == "off") return service::Limits::off();
  if (limits == "spec") return service::Limits::of_document();
  auto text = read_file(context.io.absolute(limits), kLargestLimits);
  if (!text) {
    Error error = text.error().while_doing("--limits is neither spec nor off, and cannot be read as a file");
    error.hint = "playfs serve --limits spec, or off; playfs help serve says what such a file has";
    return fail(std::move(error));
  }
  auto parsed = service::Limits::parse(*text);
  if (!parsed) return fail(parsed.error().while_doing("--limits " + limits));
  return parsed;
}

Result<std::string> read_secret(const CommandContext& context, const std::string& option, const std::string& file) {
  return runtime::read_secret_file(context.io.absolute(file), option + " " + file);
}

/// "smtps://user@mail.example.org:465", with the password in a separate file.
Result<std::optional<net::SmtpServer>> mail_server(const CommandContext& context, const ServeArguments& arguments) {
  if (arguments.smtp.empty()) return std::nullopt;
  net::SmtpServer server;
  auto scheme_end = arguments.smtp.find("://");
  std::string scheme = arguments.smtp.substr(0, scheme_end);
  if (scheme_end == std::string::npos || (scheme != "smtp" && scheme != "smtps"))
    return fail(ErrorCode::invalid_argument, "--smtp " + arguments.smtp + ": not a mail server",
                "--smtp smtp://mail.example.org:587");
  if (arguments.mail_from.find('@') == std::string::npos)
    return fail(ErrorCode::invalid_argument, "--smtp needs --mail-from, the sender address",
                "--mail-from playground@example.org");
  std::string host = arguments.smtp.substr(scheme_end + 3);
  if (auto at = host.rfind('@'); at != std::string::npos) {
    server.user = host.substr(0, at);
    host.erase(0, at + 1);
  }
  server.url = scheme + "://" + host;
  server.from = arguments.mail_from;
  // A mail server on this machine needs no TLS, and rarely has a certificate for that name.
  auto named = service::parse_host(host.substr(0, host.find('/')));
  if (!named)
    return fail(ErrorCode::invalid_argument, "--smtp " + arguments.smtp + ": no host",
                "--smtp smtp://mail.example.org:587");
  server.plain = named->is_loopback;
  if (!arguments.smtp_password.empty()) {
    PLAYFS_TRY(server.password, read_secret(context, "--smtp-password", arguments.smtp_password));
  }
  return server;
}

/// Returns the memory of a burst of requests to the system: large blocks at once; small ones share two arenas, since
/// otherwise each thread would keep its own.
void give_memory_back() {
  constexpr int large = 128 * 1024;
  mallopt(M_MMAP_THRESHOLD, large);
  mallopt(M_TRIM_THRESHOLD, large);
  mallopt(M_ARENA_MAX, 2);
}

}  // namespace

Result<ExitCode> serve(CommandContext& context, const ServeArguments& arguments) {
  runtime::SiteServerOptions options;
  PLAYFS_TRY(const StorePlace place, store_place(context, arguments.store));
  if (!arguments.words.empty()) return care_for_store(context, arguments, place);
  options.directory = place.directory;
  options.database = place.database;
  give_memory_back();
  PLAYFS_CHECK(compare::load_library());
  runtime::outlive_readers();
  runtime::forgo_core_dumps();
  runtime::forgo_new_privileges();
  runtime::forgo_inspection();
  PLAYFS_TRY(Listen listen, parse_listen(arguments.listen));
  options.listen.address = listen.address;
  options.listen.port = listen.port;
  PLAYFS_TRY(options.service.limits, limits_of(context, arguments.limits));
  PLAYFS_TRY(options.service.proxies, service::TrustedProxies::parse(arguments.proxies));
  for (const std::string& host : arguments.hosts)
    if (!service::parse_host(host))
      return fail(ErrorCode::invalid_argument, "--host " + host + ": no host", "--host playground.example.org");
  options.service.site_hosts = arguments.hosts;
  if (!arguments.steward_key.empty()) {
    PLAYFS_TRY(options.service.steward_key, read_secret(context, "--steward-key", arguments.steward_key));
  }
  if (!arguments.access_log.empty()) options.access_log = context.io.absolute(arguments.access_log);
  PLAYFS_TRY(options.smtp, mail_server(context, arguments));

  runtime::close_inherited_descriptors();
  runtime::raise_descriptor_limit();
  runtime::TerminationSignals signals;
  PLAYFS_TRY(auto site, runtime::SiteServer::start(std::move(options), context.io.clock, context.io.random));
  std::string url = "http://" + site->endpoint();
  context.out.line(url);
  const std::string shown = place.is_database() ? place.name() : place.directory;
  context.out.note("Serving " + shown + ", write limits: " + arguments.limits + ". Press Ctrl-C to stop.");
  if (!site->outbox().empty()) context.out.note("Sign-in codes are written to " + site->outbox() + ".");
  context.out.document(JsonObject{{"url", url}, {"store", shown}});
  context.io.out.flush();
  runtime::tell_service_manager("READY=1");
  signals.wait();
  runtime::tell_service_manager("STOPPING=1");
  site->drain();
  if (arguments.drain > 0) signals.wait_for(std::chrono::seconds(arguments.drain));
  site->stop();
  return ExitCode::done;
}

}  // namespace playfs::app
