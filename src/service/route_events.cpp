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
  auto newest = store_.newest_change();
  if (!newest) return {readable(fail(std::move(newest).error()), request), std::nullopt};
  // A number above the newest comes from a later state of this store: it was restored from a backup since.
  const bool is_known = !cursor || (cursor->site_id == store_.site_id() && cursor->number <= *newest);
  const Position after = cursor && is_known ? cursor->number : *newest;

  HttpResponse response;
  response.status = 200;
  // The last header is for proxies like nginx, which would hold the events back.
  response.headers = {
      {"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}};
  response.body = "retry: 1000\nid: " + print_change_cursor(store_.site_id(), after) +
                  "\nevent: " + (is_known ? "hello" : "reset") + "\ndata: {}\n\n";
  return {readable(std::move(response), request), after};
}

}  // namespace playfs::service
