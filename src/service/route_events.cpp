// Service: events, which tell listening clients what has changed.
#include <utility>

#include "service/service.h"

namespace playfs::service {

namespace {

/// Where a client wants to resume. A reconnecting browser sends the header, but with the address it began with.
std::optional<std::string_view> cursor_of(const Target& target, const HttpRequest& request) {
  auto header = request.headers.get("Last-Event-ID");
  if (header && !header->empty()) return header;
  auto parameter = target.parameter("after");
  if (parameter && parameter->empty()) return std::nullopt;
  return parameter;
}

}  // namespace

Watch Service::begin_watch(const Target& target, const HttpRequest& request) const {
  std::optional<ChangeCursor> cursor;
  if (auto text = cursor_of(target, request)) {
    cursor = parse_change_cursor(*text);
    if (!cursor)
      return {readable(refuse({ErrorCode::invalid_argument, "after must be the id of an event, unchanged", {}},
                              {{"parameter", "after"}}),
                       request),
              std::nullopt};
  }
  auto is_known = cursor ? service::is_known(store_, *cursor) : Result<bool>(true);
  if (!is_known) return {readable(fail(std::move(is_known).error()), request), std::nullopt};
  if (!cursor || !*is_known) {
    auto newest = newest_cursor(store_);
    if (!newest) return {readable(fail(std::move(newest).error()), request), std::nullopt};
    cursor = *std::move(newest);
  }

  HttpResponse response;
  response.status = 200;
  // The last header is for proxies like nginx, which would hold the events back.
  response.headers = {
      {"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}};
  response.body = "retry: 1000\n";
  if (*is_known) response.body += "id: " + print_change_cursor(*cursor) + "\nevent: hello\ndata: {}\n\n";
  else response.body += print_reset(*cursor);
  return {readable(std::move(response), request), cursor->number};
}

}  // namespace playfs::service
