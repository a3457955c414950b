// Lines of a client of the Model Context Protocol: the same replies wherever the pieces end, each of them one message
// of one line, none without its request, and progress and results that name it. The first byte is the length of the
// pieces.
#include <string>
#include <vector>

#include "fuzz.h"
#include "mcp/lines.h"
#include "mcp/protocol.h"
#include "wire/json.h"

using namespace playfs;

namespace {

constexpr std::size_t kLongest = 4096;

/// Checks a message of the server, and whether it has the request's id (nullptr: any).
void check(const std::string& line, const Json* id) {
  FUZZ_CHECK(line.find('\n') == std::string::npos);
  const auto message = wire::parse_json(line);
  FUZZ_CHECK(message && message->object() && *message->object()->find("jsonrpc") == Json("2.0"));
  const JsonObject& object = *message->object();
  FUZZ_CHECK(
      (object.find("result") != nullptr) + (object.find("error") != nullptr) + (object.find("method") != nullptr) == 1);
  const Json* replied = object.find("id");
  FUZZ_CHECK(!replied || replied->string() || replied->number());
  FUZZ_CHECK(!object.find("result") || replied);
  FUZZ_CHECK(!id || (replied && *replied == *id));
}

void answer(const mcp::Protocol& protocol, const mcp::Request& request, std::vector<std::string>& said) {
  said.push_back(protocol.result(request, {{"tools", Json::Array()}}));
  check(said.back(), &request.id);
  said.push_back(mcp::Protocol::failure(request, {ErrorCode::not_found, "none"}));
  check(said.back(), &request.id);
  if (!request.progress_token) return;
  said.push_back(mcp::Protocol::progress(request, 1, 2, "half"));
  check(said.back(), nullptr);
}

std::vector<std::string> said_to(std::string_view text, std::size_t step) {
  mcp::Protocol protocol({"playfs", "1", "Be careful"});
  std::vector<std::string> said;
  auto take = [&](std::string_view line) {
    FUZZ_CHECK(line.size() <= kLongest);
    const mcp::Received received = protocol.take(line);
    for (const std::string& reply : received.replies) check(reply, nullptr), said.push_back(reply);
    for (const mcp::Request& request : received.requests) answer(protocol, request, said);
    for (const Json& id : received.cancelled) said.push_back(wire::to_text(id));
  };
  mcp::Lines lines(kLongest, {take, [&] { said.push_back(mcp::Protocol::too_long()); }});
  for (; !text.empty(); text.remove_prefix(std::min(step, text.size()))) lines.feed(text.substr(0, step));
  lines.end();
  return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text = as_text(data + 1, size - 1);
  FUZZ_CHECK(said_to(text, 1 + data[0] % 64) == said_to(text, text.size()));
  return 0;
}
