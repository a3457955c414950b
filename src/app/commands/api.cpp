// playfs api: makes any call of the Data API.
#include <iterator>

#include "app/commands/commands.h"
#include "base/await.h"
#include "base/fd.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::app {

namespace {

constexpr std::size_t kLargestBody = 1 << 20;

Result<std::string> body_of(CommandContext& context, const std::string& argument) {
  if (argument == "-") return std::string(std::istreambuf_iterator<char>(context.io.in), {});
  if (argument.starts_with('@')) return read_file(context.io.absolute(argument.substr(1)), kLargestBody);
  return argument;
}

}  // namespace

Result<ExitCode> api(CommandContext& context, const ApiArguments& arguments) {
  if (!arguments.path.starts_with('/'))
    return fail(ErrorCode::invalid_argument, "'" + arguments.path + "' does not begin with '/'",
                "playfs api GET /projects");
  PLAYFS_TRY(auto stack, context.open_client_stack());
  HttpRequest request;
  for (char c : arguments.method) request.method += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  // Paths are below the base path; one that includes it is accepted too.
  const std::string& base = stack->source().base_path;
  request.target = arguments.path.starts_with(base + "/") ? arguments.path.substr(base.size()) : arguments.path;
  if (arguments.body) {
    PLAYFS_TRY(request.body, body_of(context, *arguments.body));
  }
  PLAYFS_TRY(HttpResponse response,
             await<HttpResponse>([&](auto done) { stack->client().raw(std::move(request), {}, std::move(done)); }));
  bool ok = response.status >= 200 && response.status < 300;
  if (context.out.json()) {
    auto body = wire::parse_json(response.body);
    context.out.document(
        JsonObject{{"status", response.status}, {"body", body ? std::move(*body) : Json(response.body)}});
  } else {
    context.out.bytes(context.out.is_terminal() ? safe_json(response.body) : response.body);
    if (!response.body.ends_with('\n')) context.out.bytes("\n");
  }
  if (ok) return ExitCode::done;
  Error error = wire::decode_error(response.status, response.body, response.headers.get("Retry-After"));
  context.out.note("playfs: HTTP " + std::to_string(response.status) + ": " + safe(error.message));
  return exit_code_for(error.code);
}

}  // namespace playfs::app
