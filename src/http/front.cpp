#include "http/front.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "http/gzip.h"
#include "service/problem.h"

namespace playfs::http {

namespace {

// Readiness (under two names) and liveness.
constexpr std::string_view kHealth = "/healthz";
constexpr std::string_view kReady = "/healthz/ready";
constexpr std::string_view kLive = "/healthz/live";
constexpr std::string_view kMetrics = "/metrics";

HttpResponse plain_text(int status, std::string text) {
  return {status, {{"Content-Type", "text/plain; charset=utf-8"}, {"Cache-Control", "no-store"}}, std::move(text)};
}

/// A string from a stranger as JSON. Bytes beyond ASCII are escaped one by one, so that the result is valid UTF-8.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += {'\\', c};
    else if (byte < 0x20 || byte >= 0x7f) out += fmt::format("\\u{:04x}", byte);
    else out += c;
  }
  return out + '"';
}

}  // namespace

Result<std::unique_ptr<AccessLog>> AccessLog::open(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!file && errno == ENXIO)
    return fail(ErrorCode::invalid_argument, "open " + path + ": it is a pipe that nobody reads",
                "start its reader first, or name a file");
  if (!file) return fail(error_from_errno(errno, "open " + path));
  return std::unique_ptr<AccessLog>(new AccessLog(std::move(file)));
}

void AccessLog::write(const Entry& entry) {
  const bool was_torn = torn_.exchange(false);
  const std::string line = fmt::format(
      "{}{{\"time\":\"{}\",\"client\":{},\"method\":{},\"target\":{},\"status\":{},\"bytes\":{},\"ms\":{:.3f}}}\n",
      was_torn ? "\n" : "", format_iso8601(entry.time), in_quotes(entry.client), in_quotes(entry.method),
      in_quotes(entry.target), entry.status, entry.bytes,
      std::chrono::duration<double, std::milli>(entry.took).count());
  // A log that cannot be written must not stop the service; the operator sees a full disk elsewhere. The same holds for
  // a pipe that nobody reads: lines that do not fit are dropped.
  const ssize_t written = ::write(file_.get(), line.data(), line.size());
  if (written < static_cast<ssize_t>(line.size())) torn_ = was_torn || written > 0;
}

void Counters::count(RouteClass route, std::string_view method, int status, std::size_t bytes,
                     std::chrono::nanoseconds took) {
  auto known = std::find(kMethods.begin(), kMethods.end() - 1, method);
  auto row = static_cast<std::size_t>(known - kMethods.begin());
  requests_[row][static_cast<std::size_t>(std::clamp(status / 100, 0, 5))].fetch_add(1, std::memory_order_relaxed);
  RouteCounters& of_route = routes_[static_cast<std::size_t>(route)];
  of_route.seconds.add(std::chrono::duration<double>(took).count());
  of_route.bytes.add(static_cast<double>(bytes));
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

std::string Counters::prometheus() const {
  std::string out;
  print_metric_head(out, "playfs_http_requests_total", "counter", "Requests answered.");
  auto add = std::back_inserter(out);
  for (std::size_t row = 0; row < kMethods.size(); ++row)
    for (std::size_t digit = 1; digit < 6; ++digit)
      if (auto count = requests_[row][digit].load(std::memory_order_relaxed))
        fmt::format_to(add, "playfs_http_requests_total{{method=\"{}\",status=\"{}xx\"}} {}\n", kMethods[row], digit,
                       count);
  print_metric_head(out, "playfs_http_request_seconds", "histogram", "Time from a request's turn to its answer.");
  for (std::size_t i = 0; i < kRoutes.size(); ++i)
    routes_[i].seconds.print(out, "playfs_http_request_seconds", fmt::format("route=\"{}\"", kRoutes[i]));
  print_metric_head(out, "playfs_http_response_size_bytes", "histogram", "Sizes of bodies, as far as known.");
  for (std::size_t i = 0; i < kRoutes.size(); ++i)
    routes_[i].bytes.print(out, "playfs_http_response_size_bytes", fmt::format("route=\"{}\"", kRoutes[i]));
  print_metric_head(out, "playfs_http_response_bytes_total", "counter", "Bytes of bodies sent.");
  fmt::format_to(add, "playfs_http_response_bytes_total {}\n", bytes_.load(std::memory_order_relaxed));
  return out;
}

Front::Front(Handler service, Health& health, Options options, const Clock& clock)
    : service_(std::move(service)), health_(health), options_(std::move(options)), clock_(clock) {}

Answer Front::handle(const HttpRequest& request, const std::string& peer) {
  SteadyTime begin = clock_.steady();
  Answer answer = route(request, peer);
  answer.response.headers.set("X-Content-Type-Options", "nosniff");
  auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.steady() - begin);
  std::size_t bytes = request.method == "HEAD" ? 0 : answer.size().value_or(0);
  counters_.count(class_of(request), request.method, answer.response.status, bytes, took);
  if (options_.log)
    options_.log->write({clock_.wall(), options_.client ? options_.client(request, peer) : peer, request.method,
                         request.target, answer.response.status, bytes, took});
  return answer;
}

RouteClass Front::class_of(const HttpRequest& request) const {
  if (is_own(request)) return RouteClass::check;
  return options_.classify && !health_.is_starting() ? options_.classify(request) : RouteClass::other;
}

bool Front::is_own(const HttpRequest& request) {
  const bool reading = request.method == "GET" || request.method == "HEAD";
  const std::array own = {kHealth, kReady, kLive, kMetrics};
  return reading && std::find(own.begin(), own.end(), request.target) != own.end();
}

Answer Front::route(const HttpRequest& request, const std::string& peer) {
  if (!is_own(request)) {
    if (health_.is_starting())
      return service::response_of({503, "unavailable", "the service is starting", std::chrono::seconds(1), {}, {}});
    return compressed(request, [&](const HttpRequest& plain) { return service_(plain, peer); });
  }
  if (request.target == kLive) return plain_text(200, "ok\n");
  if (request.target != kMetrics) {
    const std::string_view why_not = health_.why_not_ready();
    return why_not.empty() ? plain_text(200, "ok\n") : plain_text(503, std::string(why_not) + '\n');
  }
  if (!options_.site.answers_for(request.headers.get("Host").value_or("")))
    return plain_text(421, "This host does not belong to this site.\n");
  std::string metrics = counters_.prometheus();
  if (options_.more_metrics && !health_.is_starting()) metrics += options_.more_metrics();
  HttpResponse response = plain_text(200, std::move(metrics));
  response.headers.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  return response;
}

}  // namespace playfs::http
