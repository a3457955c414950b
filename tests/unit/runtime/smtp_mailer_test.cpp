#include "runtime/smtp_mailer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/fd.h"

namespace playfs::runtime {
namespace {

/// Accepts one mail, like a mail server, and records every line it receives.
class MailServer {
 public:
  MailServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    url = "smtp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { lines.set_value(serve()); });
  }
  ~MailServer() { thread_.join(); }

  std::string url;
  std::promise<std::vector<std::string>> lines;

 private:
  std::vector<std::string> serve() {
    UniqueFd peer(accept(listener_.get(), nullptr, nullptr));
    std::vector<std::string> received;
    std::string pending;
    bool in_data = false;
    auto say = [&](const std::string& line) { return write_all(peer.get(), line + "\r\n").has_value(); };
    if (!say("220 ready")) return received;
    for (char c = 0; recv(peer.get(), &c, 1, 0) == 1;) {
      pending += c;
      if (!pending.ends_with("\r\n")) continue;
      std::string line = pending.substr(0, pending.size() - 2);
      pending.clear();
      received.push_back(line);
      if (in_data && line != ".") continue;
      if (line == "QUIT") break;
      in_data = line == "DATA";
      if (!say(in_data ? "354 go on" : "250 fine")) break;
    }
    return received;
  }

  UniqueFd listener_;
  std::thread thread_;
};

bool contains(const std::vector<std::string>& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

TEST(SmtpMailer, SendsAMailInTheBackground) {
  MailServer server;
  SystemClock clock;
  SystemRandom random;
  net::SmtpServer options;
  options.url = server.url;
  options.from = "playground@example.org";
  options.plain = true;
  SmtpMailer mailer(options, clock, random);
  ASSERT_TRUE(mailer.send({"ada@example.org", "Your code", "first line\n.\nlast line\n"}));
  auto lines = server.lines.get_future().get();
  EXPECT_TRUE(contains(lines, "MAIL FROM:<playground@example.org>"));
  EXPECT_TRUE(contains(lines, "RCPT TO:<ada@example.org>"));
  EXPECT_TRUE(contains(lines, "Subject: Your code"));
  EXPECT_TRUE(contains(lines, "first line"));
  EXPECT_TRUE(contains(lines, "..")) << "a lone dot would end the mail";
  EXPECT_TRUE(contains(lines, "last line"));
}

TEST(SmtpMailer, RefusesToSendHeadersThatSomebodySmuggledIn) {
  auto sent = net::send_mail({"smtp://127.0.0.1:1", {}, {}, "a@b.org", {}, true},
                             {"c@d.org", "hello\r\nBcc: all@example.org", {}, {}, {}});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::invalid_argument);
}

TEST(SmtpMailer, DoesNotSendInTheClearUnlessToldTo) {
  MailServer server;
  net::SmtpServer options;
  options.url = server.url;
  options.from = "playground@example.org";
  auto sent = net::send_mail(options, {"ada@example.org", "s", "t\n", "id@example.org", {}});
  EXPECT_FALSE(sent);
  for (const auto& line : server.lines.get_future().get()) EXPECT_FALSE(line.starts_with("MAIL")) << line;
}

}  // namespace
}  // namespace playfs::runtime
