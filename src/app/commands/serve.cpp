// playfs serve: the Data API on a port, over a playground on this disk.
#include <charconv>

#include "app/commands/commands.h"
#include "app/playground.h"
#include "app/signals.h"
#include "base/fd.h"
#include "http/pages/pages.h"
#include "http/server.h"

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

Result<std::string> store_directory(const Context& context, const std::string& store) {
  if (store.empty()) return context.places.data + "/default";
  if (store.find("://") != std::string::npos)
    return fail(
        ErrorCode::not_supported,
        "this build keeps its store in a directory; " + store.substr(0, store.find("://")) + " is not supported",
        "--store DIR");
  return context.io.absolute(store);
}

Result<service::Limits> limits_of(const Context& context, const std::string& limits) {
  if (limits == "off") return service::Limits::off();
  if (limits == "spec") return service::Limits::of_document();
  auto text = read_file(context.io.absolute(limits), kLargestLimits);
  if (!text) return fail(text.error().while_doing("--limits is neither spec nor off, and as a file"));
  auto parsed = service::Limits::parse(*text);
  if (!parsed) return fail(parsed.error().while_doing("--limits " + limits));
  return parsed;
}

}  // namespace

Result<ExitCode> serve(Context& context, const ServeArguments& arguments) {
  PLAYFS_TRY(Listen listen, parse_listen(arguments.listen));
  PLAYFS_TRY(std::string directory, store_directory(context, arguments.store));
  service::ServiceOptions service;
  PLAYFS_TRY(service.limits, limits_of(context, arguments.limits));
  PLAYFS_TRY(service.proxies, service::TrustedProxies::parse(arguments.proxies));
  service.site_hosts = arguments.hosts;
  TerminationSignals signals;
  PLAYFS_TRY(auto playground, Playground::open(directory, std::move(service), context.io.clock, context.io.random));
  const http::Pages pages(playground->store(), {service::ServiceOptions().base_path, arguments.hosts});
  http::ServerOptions options;
  options.address = listen.address;
  options.port = listen.port;
  PLAYFS_TRY(auto server,
             http::Server::start(std::move(options), [&](const HttpRequest& request, const std::string& peer) {
               if (pages.serves(request.target)) return pages.handle(request);
               return playground->service().handle(request, service::Caller{peer});
             }));
  std::string url = "http://" + server->endpoint();
  context.out.line(url);
  context.out.note("Serving " + directory + ", write limits: " + arguments.limits + ". End with Ctrl-C.");
  context.out.document(JsonObject{{"url", url}, {"store", directory}});
  context.io.out.flush();
  signals.wait();
  server->stop();
  return ExitCode::done;
}

}  // namespace playfs::app
