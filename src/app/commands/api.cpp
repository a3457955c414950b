// playfs api: makes any call of the Data API.
#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "app/commands/commands.h"
#include "app/standard_input.h"
#include "base/await.h"
#include "base/fd.h"
#include "base/hints.h"
#include "vfs/control/control_text.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::app {

namespace {

constexpr std::size_t kLargestBody = 1 << 20;

Result<std::string> body_of(CommandContext& context, const std::string& argument) {
  if (argument == "-") {
    std::string body = read_standard_input(context, "the request's body", kLargestBody);
    if (body.size() <= kLargestBody) return body;
    return fail(ErrorCode::record_too_large, "the body from stdin is longer than any record: nothing was sent");
  }
  if (argument.starts_with('@')) return read_file(context.io.absolute(argument.substr(1)), kLargestBody);
  return argument;
}

/// The names in the query that the Data API does not have, each once. A service ignores them, which looks as if all
/// records matched.
std::vector<std::string> unknown_parameters(const HttpRequest& request) {
  const std::string_view target = request.target;
  const std::size_t mark = target.find('?');
  if (mark == std::string_view::npos) return {};
  const bool is_list = request.method == "GET" && target.substr(0, mark).rfind('/') == 0;
  std::vector<std::string> unknown;
  for (std::string_view rest = target.substr(mark + 1); !rest.empty();) {
    const std::string_view parameter = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(parameter.size() + 1, rest.size()));
    std::string name(parameter.substr(0, parameter.find('=')));
    const bool is_known = name.empty() || (is_list && (name == "limit" || name == "cursor"));
    if (!is_known && std::find(unknown.begin(), unknown.end(), name) == unknown.end())
      unknown.push_back(std::move(name));
  }
  return unknown;
}

/// As a warning: services may know more than their documentation says.
void warn_of(CommandContext& context, const std::vector<std::string>& unknown) {
  if (unknown.empty()) return;
  std::string names;
  for (const std::string& name : unknown) names += (names.empty() ? "'" : ", '") + safe(name) + "'";
  context.out.note("playfs: the Data API has no parameter " + names +
                   ": it has no filters, so the answer is as without. Lists take limit and cursor.\nTry: " +
                   safe(context.next_command({{"search", "TEXT"}})) + ", or filter what you read");
}

/// What a service refuses, as other commands report it.
Error failure_in(const CommandContext& context, const HttpRequest& asked, const HttpResponse& response) {
  Error error = wire::decode_error(response.status, response.body, response.headers.get("Retry-After"));
  constexpr int kMethodNotAllowed = 405;
  const std::string path = asked.target.substr(0, asked.target.find('?'));
  if (!error.hint.empty()) return error;
  const bool reads = asked.method == "GET" || asked.method == "HEAD";
  const auto slash = path.rfind('/');
  if (error.code == ErrorCode::not_found && slash > 0)
    error.hint = context.next_command({{"api", "GET"}, {path.substr(0, slash)}}) + " lists what is there";
  else if (error.code == ErrorCode::not_found)
    error.hint = context.next_command({{"api", "GET"}, {"/"}}) + " lists the collections";
  else if (response.status == kMethodNotAllowed)
    error.hint = "playfs help api: GET reads, POST to a collection creates, PATCH of a record changes it";
  else if (error.code == ErrorCode::invalid_argument && !reads)
    error.hint = context.next_command({{"api", "GET"}, {"/"}}) +
                 " lists the fields; --data gives them: -d '{\"name\": \"demo\"}'";
  else if (error.code == ErrorCode::invalid_argument)
    error.hint = "lists take limit, from 1 to 100, and cursor, the nextCursor of the page before";
  return error;
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
  const HttpRequest asked{request.method, request.target, {}, {}};
  PLAYFS_TRY(HttpResponse response,
             await<HttpResponse>([&](auto done) { stack->client().raw(std::move(request), {}, std::move(done)); }));
  const std::vector<std::string> unknown = unknown_parameters(asked);
  warn_of(context, unknown);
  bool ok = response.status >= 200 && response.status < 300;
  std::optional<Error> error;
  if (!ok) error = failure_in(context, asked, response);
  if (context.out.json()) {
    auto body = wire::parse_json(response.body);
    JsonObject document{{"status", response.status}, {"body", body ? std::move(*body) : Json(response.body)}};
    if (!unknown.empty()) document.append("ignored_parameters", Json::Array(unknown.begin(), unknown.end()));
    if (error) document.append("error", vfs::error_json(*error));
    context.out.document(std::move(document));
  } else {
    context.out.bytes(context.out.is_terminal() ? safe_json(response.body) : response.body);
    if (!response.body.ends_with('\n')) context.out.bytes("\n");
  }
  if (!error) return ExitCode::done;
  context.out.note("playfs: HTTP " + std::to_string(response.status) + ": " + safe(error->message) +
                   "\nTry: " + safe(hint_of(*error)));
  return exit_code_for(error->code);
}

}  // namespace playfs::app
