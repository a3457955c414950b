#include "mcp/server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/fd.h"

namespace playfs::mcp {
namespace {

using testing::HasSubstr;

/// Tools: "echo" answers; "wait" waits until it is told to stop, or its system call is interrupted.
class Toys final : public Features {
 public:
  [[nodiscard]] unsigned lanes() const override { return 2; }
  [[nodiscard]] Turn turn_of(const Request& request) const override {
    const Json* name = request.params.find("name");
    return {name && *name == Json("wait") ? 1U : 0U, {}};
  }
  [[nodiscard]] const Json::Array& tools() const override { return tools_; }
  Answer call(const std::string& tool, const JsonObject&, Call& call) override {
    if (tool == "echo") return {{"echoed"}, false};
    call.report(1, 2, "half");
    const Call::Wait wait(call);
    while (!call.is_over()) pause();
    return {{"waited"}, false};
  }
  [[nodiscard]] const Json::Array& resource_templates() const override { return none_; }
  Result<ResourcePage> resources(const std::optional<std::string>&, Call&) override { return ResourcePage{}; }
  Result<JsonObject> resource(const std::string&, Call&) override { return fail(ErrorCode::not_found, "none"); }

 private:
  const Json::Array tools_{JsonObject{{"name", "echo"}}, JsonObject{{"name", "wait"}}}, none_{};
};

class Servers : public testing::Test {
 protected:
  Servers() {
    struct sigaction nothing {};
    nothing.sa_handler = [](int) {};
    sigaction(SIGUSR1, &nothing, nullptr);
    signal(SIGPIPE, SIG_IGN);
    int in[2], out[2];
    EXPECT_TRUE(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    server_in_ = UniqueFd(in[0]), to_ = UniqueFd(in[1]), from_ = UniqueFd(out[0]), server_out_ = UniqueFd(out[1]);
    thread_ = std::thread([this] {
      Server server({"toys", "1", ""}, toys_, server_in_.get(), server_out_.get(), SIGUSR1);
      auto ended = server.run();
      EXPECT_TRUE(ended && *ended);
      server_out_ = UniqueFd();
    });
    send(R"({"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25"}})");
    EXPECT_THAT(line(), HasSubstr("protocolVersion"));
  }
  ~Servers() override {
    to_ = UniqueFd();
    if (thread_.joinable()) thread_.join();
  }

  void send(const std::string& text) { EXPECT_TRUE(write_all(to_.get(), text + "\n")); }
  void call(int id, const std::string& tool, const std::string& more = "") {
    send(R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":"tools/call","params":{"name":")" + tool +
         '"' + more + "}}");
  }
  /// "" at the end.
  std::string line() {
    std::string line;
    for (char next = 0; read(from_.get(), &next, 1) == 1 && next != '\n';) line += next;
    return line;
  }

  Toys toys_;
  UniqueFd server_in_, to_, from_, server_out_;
  std::thread thread_;
};

TEST_F(Servers, AnswerWhileAnotherRequestWaits) {
  call(1, "wait", R"(,"_meta":{"progressToken":9})");
  EXPECT_THAT(line(), HasSubstr(R"("progressToken":9)"));
  call(2, "echo");
  EXPECT_THAT(line(), HasSubstr(R"("id":2,"result":{"content":[{"type":"text","text":"echoed"}],"isError":false})"));
  call(1, "echo");
  EXPECT_THAT(line(), HasSubstr("-32600")) << "its id is in use";
}

TEST_F(Servers, WhatIsCancelledIsInterruptedAndNotAnswered) {
  call(1, "wait");
  call(2, "wait");
  send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}})");
  send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}})");
  call(4, "echo");
  EXPECT_THAT(line(), HasSubstr(R"("id":4)"));
  to_ = UniqueFd();
  EXPECT_EQ(line(), "") << "nothing else came";
}

TEST_F(Servers, AtTheEndWhatWasAskedForIsAnsweredStill) {
  call(1, "echo");
  call(2, "wait");
  EXPECT_TRUE(write_all(to_.get(), R"({"jsonrpc":"2.0","id":3,"method":"resources/list"})"));  // without a line's end
  to_ = UniqueFd();
  std::string all;
  for (std::string each = line(); !each.empty(); each = line()) all += each;
  for (const char* part : {R"("id":1)", R"("id":2)", R"("id":3)"}) EXPECT_THAT(all, HasSubstr(part));
}

TEST_F(Servers, TooMuchAtOnceIsRefusedAndTheRestIsAnswered) {
  constexpr int kCalls = 100;
  for (int i = 0; i < kCalls; ++i) call(i, "wait");
  int refused = 0;
  for (; refused < kCalls - 65; ++refused) EXPECT_THAT(line(), HasSubstr("too many requests"));
  call(1000, "echo");
  while (refused < kCalls && line().find(R"("id":1000)") == std::string::npos) ++refused;
  EXPECT_LE(refused, kCalls - 64);
}

TEST_F(Servers, AClientThatLeavesWithoutReadingEndsThem) {
  // Far more than a pipe holds.
  for (int i = 0; i < 60; ++i) send(R"({"jsonrpc":"2.0","id":")" + std::string(1000, 'x') + R"(","method":"ping"})");
  for (int i = 0; i < 60; ++i) call(i, "echo");
  std::thread flood([this] {
    for (int i = 0; i < 3'000; ++i) {
      const std::string ping = R"({"jsonrpc":"2.0","id":")" + std::string(900, 'y') + "\",\"method\":\"ping\"}\n";
      if (write(to_.get(), ping.data(), ping.size()) < 0) return;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  from_ = UniqueFd();
  thread_.join();
  server_in_ = UniqueFd();
  flood.join();
}

}  // namespace
}  // namespace playfs::mcp
