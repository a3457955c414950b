#include "mcp/server.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "mcp/lines.h"
#include "wire/json.h"

namespace playfs::mcp {

namespace {

using std::chrono::milliseconds;

/// How often an answer that is no longer wanted is interrupted: the signal may come between two system calls.
constexpr milliseconds kNudgeEvery{100};
/// At the end: how long answers may take, and how long once they were told.
constexpr milliseconds kEndPatience{5'000};

/// nullopt: absent. Errors: another type.
Result<std::optional<std::string>> text_in(const JsonObject& params, const char* name) {
  const Json* value = params.find(name);
  if (!value) return std::optional<std::string>();
  if (!value->string()) return fail(ErrorCode::invalid_argument, std::string(name) + " is a text");
  return std::optional(*value->string());
}

}  // namespace

Server::Server(Identity identity, Features& features, int in, int out, int nudge)
    : features_(features),
      in_(in),
      nudge_(nudge),
      protocol_(std::move(identity)),
      client_(in, out),
      lanes_(features.lanes(), {}) {}

Result<bool> Server::run() {
  Lines lines(kLongestLine, {[this](std::string_view line) { take(protocol_.take(line)); },
                             [this] { client_.send(Protocol::too_long()); }});
  std::array<char, 64 << 10> piece{};
  bool are_running = false;
  while (!client_.is_gone()) {
    pollfd ready{in_, POLLIN, 0};
    const int polled = poll(&ready, 1, are_running ? static_cast<int>(kNudgeEvery.count()) : -1);
    are_running = nudge_unwanted();
    if (polled < 0 && errno != EINTR) return fail(error_from_errno(errno, "wait for the client"));
    if (polled <= 0) continue;
    const ssize_t size = read(in_, piece.data(), piece.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size <= 0) break;  // an error ends the connection as well
    lines.feed(std::string_view(piece.data(), static_cast<std::size_t>(size)));
    are_running = nudge_unwanted();
  }
  lines.end();
  return finish();
}

bool Server::finish() {
  if (!client_.is_gone() && lanes_.wait_until_idle(kEndPatience)) return true;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, running] : running_) running->call.end();
  }
  const auto end = std::chrono::steady_clock::now() + kEndPatience;
  while (!lanes_.wait_until_idle(kNudgeEvery)) {
    if (std::chrono::steady_clock::now() > end) return false;
    nudge_unwanted();
  }
  return true;
}

void Server::take(Received received) {
  for (std::string& reply : received.replies) client_.send(std::move(reply));
  for (Request& request : received.requests) begin(std::move(request));
  for (const Json& id : received.cancelled) cancel(id);
}

bool Server::has_tool(const std::string& name) const {
  return std::any_of(features_.tools().begin(), features_.tools().end(), [&](const Json& tool) {
    const Json* own = tool.object()->find("name");
    return own && own->string() && *own->string() == name;
  });
}

void Server::begin(Request request) {
  if (request.method == "tools/list")
    return client_.send(protocol_.result(request, JsonObject{{"tools", features_.tools()}}));
  if (request.method == "resources/templates/list")
    return client_.send(protocol_.result(request, JsonObject{{"resourceTemplates", features_.resource_templates()}}));
  if (request.method == "tools/call") {
    const auto tool = text_in(request.params, "name");
    const Json* arguments = request.params.find("arguments");
    if (!tool || !*tool || !has_tool(**tool))
      return client_.send(Protocol::error(request, kInvalidParams, "Unknown tool; tools/list has those there are"));
    if (arguments && !arguments->object())
      return client_.send(Protocol::error(request, kInvalidParams, "arguments is an object"));
  }
  const std::string key = wire::to_text(request.id);
  const std::size_t size = json_size(Json(request.params));
  const Turn turn = features_.turn_of(request);
  Call::Report report;
  if (request.progress_token)
    report = [this, plain = Request{request.id, {}, {}, request.era, request.progress_token}](
                 double done, double total, const std::string& message) {
      client_.send(Protocol::progress(plain, done, total, message));
    };
  auto running = std::make_shared<Running>(std::move(request), std::move(report));
  bool is_known = false;
  {
    MutexLock lock(mutex_);
    is_known = !running_.emplace(key, running).second;
  }
  if (is_known)
    return client_.send(
        Protocol::error(running->request, kInvalidRequest, "another request with this id is being answered"));
  if (lanes_.add(turn.lane, turn.after, size, [this, running] { answer(*running); })) return;
  {
    MutexLock lock(mutex_);
    running_.erase(key);
  }
  client_.send(Protocol::error(running->request, kInternalError,
                               "too many requests at once: wait for answers, then send it again"));
}

void Server::cancel(const Json& id) {
  MutexLock lock(mutex_);
  auto found = running_.find(wire::to_text(id));
  if (found != running_.end()) found->second->call.cancel();
}

bool Server::nudge_unwanted() {
  MutexLock lock(mutex_);
  for (const auto& [id, running] : running_)
    if (running->thread && running->call.waits() && running->call.is_over()) pthread_kill(*running->thread, nudge_);
  return !running_.empty();
}

void Server::answer(Running& running) {
  {
    MutexLock lock(mutex_);
    running.thread = pthread_self();
  }
  std::string reply;
  if (!running.call.is_cancelled()) reply = reply_to(running);
  bool is_wanted = false;
  {
    MutexLock lock(mutex_);
    running.thread.reset();
    is_wanted = !running.call.is_cancelled();
    running_.erase(wire::to_text(running.request.id));
  }
  if (is_wanted) client_.send(std::move(reply));
}

std::string Server::reply_to(Running& running) {
  const Request& request = running.request;
  if (request.method == "tools/call") return call_tool(request, running.call);
  if (request.method == "resources/list") return list_resources(request, running.call);
  return read_resource(request, running.call);
}

std::string Server::call_tool(const Request& request, Call& call) {
  const Json* arguments = request.params.find("arguments");
  const JsonObject none;
  const Answer answer =
      features_.call(*request.params.find("name")->string(), arguments ? *arguments->object() : none, call);
  Json::Array content;
  for (const std::string& text : answer.texts) content.emplace_back(JsonObject{{"type", "text"}, {"text", text}});
  return protocol_.result(request, JsonObject{{"content", std::move(content)}, {"isError", answer.is_error}});
}

std::string Server::list_resources(const Request& request, Call& call) {
  auto cursor = text_in(request.params, "cursor");
  if (!cursor) return Protocol::failure(request, cursor.error());
  auto page = features_.resources(*cursor, call);
  if (!page) return Protocol::failure(request, page.error());
  JsonObject result{{"resources", std::move(page->resources)}};
  if (page->next) result.append("nextCursor", *page->next);
  return protocol_.result(request, std::move(result));
}

std::string Server::read_resource(const Request& request, Call& call) {
  auto uri = text_in(request.params, "uri");
  if (uri && !*uri) uri = fail(ErrorCode::invalid_argument, "resources/read names a uri");
  if (!uri) return Protocol::failure(request, uri.error());
  auto contents = features_.resource(**uri, call);
  if (!contents) return Protocol::failure(request, contents.error());
  return protocol_.result(request, JsonObject{{"contents", Json::Array{std::move(*contents)}}});
}

}  // namespace playfs::mcp
