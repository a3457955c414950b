#include "mcp/protocol.h"

#include <algorithm>
#include <array>

#include "wire/json.h"

namespace playfs::mcp {

namespace {

constexpr std::string_view kStateless = "2026-07-28";
/// Newest first.
constexpr std::array<std::string_view, 4> kSessions = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
/// The one revision with JSON-RPC's batches.
constexpr std::string_view kWithBatches = "2025-03-26";
constexpr std::size_t kLargestBatch = 100;

constexpr const char* kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr const char* kServerKey = "io.modelcontextprotocol/serverInfo";

constexpr std::int64_t kAnHour = 3'600'000;  // milliseconds

constexpr std::array<std::string_view, 5> kForOthers = {"tools/list", "tools/call", "resources/list",
                                                        "resources/templates/list", "resources/read"};

bool is_for_others(std::string_view method) {
  return std::find(kForOthers.begin(), kForOthers.end(), method) != kForOthers.end();
}

/// As texts and numbers of a request's id or token may be.
bool is_id(const Json& value) {
  if (value.string()) return value.string()->size() <= kLongestId;
  return value.number() != nullptr && value.number()->text.size() <= kLongestId;
}

/// `id`: nullptr if it cannot be told.
std::string error_line(const Json* id, int code, const std::string& message, Json data = {}) {
  JsonObject error{{"code", code}, {"message", message}};
  if (!data.is_null()) error.append("data", std::move(data));
  JsonObject line{{"jsonrpc", "2.0"}};
  if (id) line.append("id", *id);
  line.append("error", std::move(error));
  return wire::to_text(Json(std::move(line)));
}

std::string result_line(const Json& id, JsonObject result) {
  return wire::to_text(Json(JsonObject{{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}}));
}

Json capabilities() { return JsonObject{{"tools", JsonObject()}, {"resources", JsonObject()}}; }

/// What the server says of how long a result may be kept. The tools are the same as long as the process runs.
void add_caching(const std::string& method, JsonObject& result) {
  if (method == "tools/call") return;
  const bool is_fixed = method == "server/discover" || method == "tools/list" || method == "resources/templates/list";
  result.set("ttlMs", is_fixed ? kAnHour : std::int64_t{0});
  result.set("cacheScope", is_fixed ? "public" : "private");
}

}  // namespace

std::string Protocol::too_long() {
  return error_line(nullptr, kInvalidRequest,
                    "the message is longer than " + std::to_string(kLongestLine >> 20) + " MiB and was skipped");
}

std::string Protocol::result(const Request& request, JsonObject result) const {
  if (request.era == Era::stateless) {
    result.set("resultType", "complete");
    add_caching(request.method, result);
    result.set("_meta", JsonObject{{kServerKey, server_info()}});
  }
  return result_line(request.id, std::move(result));
}

std::string Protocol::error(const Request& request, int code, const std::string& message) {
  return error_line(&request.id, code, message);
}

std::string Protocol::failure(const Request& request, const Error& error) {
  const std::string message = error.message + (error.hint.empty() ? "" : ": " + error.hint);
  switch (error.code) {
    case ErrorCode::invalid_argument: return Protocol::error(request, kInvalidParams, message);
    case ErrorCode::not_found:
      return Protocol::error(request, request.era == Era::stateless ? kInvalidParams : kResourceNotFound, message);
    default: return Protocol::error(request, kInternalError, message);
  }
}

std::string Protocol::progress(const Request& request, double done, double total, const std::string& message) {
  JsonObject params{{"progressToken", *request.progress_token}, {"progress", done}};
  if (total > 0) params.append("total", total);
  params.append("message", message);
  return wire::to_text(
      Json(JsonObject{{"jsonrpc", "2.0"}, {"method", "notifications/progress"}, {"params", std::move(params)}}));
}

Received Protocol::take(std::string_view line) {
  Received received;
  wire::JsonLimits limits;
  limits.document_size = limits.string_size = kLongestLine;
  auto message = wire::parse_json(line, limits);
  if (!message) {
    received.replies.push_back(error_line(nullptr, kParseError, message.error().message));
    return received;
  }
  const Json::Array* batch = message->array();
  if (!batch) {
    take_message(*message, received);
    return received;
  }
  if (version_ != kWithBatches || batch->empty() || batch->size() > kLargestBatch) {
    received.replies.push_back(error_line(nullptr, kInvalidRequest, "send one message in a line, not a batch"));
    return received;
  }
  for (const Json& each : *batch) take_message(each, received);
  return received;
}

void Protocol::take_message(const Json& message, Received& received) {
  const JsonObject* object = message.object();
  const Json* id = object ? object->find("id") : nullptr;
  auto refuse = [&](int code, const std::string& why) {
    received.replies.push_back(error_line(id && is_id(*id) ? id : nullptr, code, why));
  };
  if (!object) return refuse(kInvalidRequest, "a message is an object");
  const Json* version = object->find("jsonrpc");
  if (!version || !version->string() || *version->string() != "2.0")
    return refuse(kInvalidRequest, "a message has \"jsonrpc\": \"2.0\"");
  const Json* method = object->find("method");
  // A response. Nothing was asked, so it is none of ours.
  if (!method && (object->find("result") || object->find("error"))) return;
  if (!method || !method->string()) return refuse(kInvalidRequest, "a request has a method");
  if (id && !is_id(*id)) return refuse(kInvalidRequest, "an id is a short text or a number");
  const Json* params = object->find("params");
  if (!id) {
    if (*method->string() != "notifications/cancelled" || !params || !params->object()) return;
    const Json* which = params->object()->find("requestId");
    if (which && is_id(*which)) received.cancelled.push_back(*which);
    return;
  }
  if (params && !params->object()) return refuse(kInvalidParams, "params is an object");
  take_request({*id, *method->string(), params ? *params->object() : JsonObject(), Era::sessions, {}}, received);
}

void Protocol::take_request(Request request, Received& received) {
  if (request.method == "initialize") return initialize(request, received);
  const bool is_discover = request.method == "server/discover", is_ping = request.method == "ping";
  if (!is_for_others(request.method) && !is_discover && !is_ping) {
    received.replies.push_back(error(request, kMethodNotFound, "there is no such method here"));
    return;
  }
  if (auto refusal = refuse_era(request)) {
    received.replies.push_back(std::move(*refusal));
  } else if (request.era == Era::stateless ? is_ping : is_discover) {
    received.replies.push_back(error(request, kMethodNotFound, "there is no such method in this revision"));
  } else if (is_ping) {
    received.replies.push_back(result(request, {}));
  } else if (is_discover) {
    discover(request, received);
  } else {
    received.requests.push_back(std::move(request));
  }
}

std::optional<std::string> Protocol::refuse_era(Request& request) const {
  const Json* found = request.params.find("_meta");
  const JsonObject* meta = found ? found->object() : nullptr;
  if (found && !meta) return error(request, kInvalidParams, "_meta is an object");
  const Json* token = meta ? meta->find("progressToken") : nullptr;
  if (token && is_id(*token)) request.progress_token = *token;
  const Json* version = meta ? meta->find(kVersionKey) : nullptr;
  if (!version) {
    if (!version_.empty() || request.method == "ping") return std::nullopt;
    return error(request, kInvalidParams,
                 std::string("which revision of the protocol? Begin with initialize (up to ") +
                     std::string(kSessions.front()) + "), or send " + kVersionKey + " in _meta (" +
                     std::string(kStateless) + ")");
  }
  request.era = Era::stateless;
  if (!version->string()) return error(request, kInvalidParams, std::string(kVersionKey) + " is a text");
  if (*version->string() != kStateless)
    return error_line(&request.id, kUnsupportedVersion, "Unsupported protocol version",
                      JsonObject{{"supported", Json::Array{kStateless}}, {"requested", *version->string()}});
  const Json* client = meta->find(kCapabilitiesKey);
  if (!client || !client->object())
    return error(request, kInvalidParams, std::string("_meta has no object ") + kCapabilitiesKey);
  return std::nullopt;
}

void Protocol::initialize(const Request& request, Received& received) {
  const Json* wanted = request.params.find("protocolVersion");
  if (!wanted || !wanted->string()) {
    received.replies.push_back(error(request, kInvalidParams, "initialize names a protocolVersion"));
    return;
  }
  const auto* known = std::find(kSessions.begin(), kSessions.end(), *wanted->string());
  version_ = known == kSessions.end() ? kSessions.front() : *known;
  received.replies.push_back(result_line(request.id, JsonObject{{"protocolVersion", version_},
                                                                {"capabilities", capabilities()},
                                                                {"serverInfo", server_info()},
                                                                {"instructions", identity_.instructions}}));
}

void Protocol::discover(const Request& request, Received& received) const {
  received.replies.push_back(result(request, JsonObject{{"supportedVersions", Json::Array{kStateless}},
                                                        {"capabilities", capabilities()},
                                                        {"instructions", identity_.instructions}}));
}

}  // namespace playfs::mcp
