#include "runtime/smtp_mailer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <future>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/mutex.h"
#include "support/manual_time.h"

namespace playfs::runtime {
namespace {

/// Where a mail server listens.
struct Listener {
  explicit Listener(int backlog) : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd.get(), backlog), 0);
    EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    url = "smtp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  UniqueFd fd;
  std::string url;
};

/// The server's side of one connection: greets, and takes what comes until QUIT. `heard` gets each line.
template <class Heard>
void converse(int peer, const Heard& heard) {
  auto say = [&](const char* line) { return write_all(peer, std::string(line) + "\r\n").has_value(); };
  if (!say("220 ready")) return;
  std::string pending;
  bool in_data = false;
  for (char c = 0; recv(peer, &c, 1, 0) == 1;) {
    pending += c;
    if (!pending.ends_with("\r\n")) continue;
    const std::string line = pending.substr(0, pending.size() - 2);
    pending.clear();
    heard(line);
    if (in_data && line != ".") continue;
    if (line == "QUIT") return;
    in_data = line == "DATA";
    if (!say(in_data ? "354 go on" : "250 fine")) return;
  }
}

/// Accepts one mail, like a mail server, and records every line it receives.
class MailServer {
 public:
  ~MailServer() { thread_.join(); }
  [[nodiscard]] const std::string& url() const { return listener_.url; }

  std::promise<std::vector<std::string>> lines;

 private:
  std::vector<std::string> serve() {
    UniqueFd peer(accept(listener_.fd.get(), nullptr, nullptr));
    std::vector<std::string> received;
    converse(peer.get(), [&](const std::string& line) { received.push_back(line); });
    return received;
  }

  Listener listener_{1};
  std::thread thread_{[this] { lines.set_value(serve()); }};
};

bool contains(const std::vector<std::string>& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

TEST(SmtpMailer, SendsAMailInTheBackground) {
  MailServer server;
  SystemClock clock;
  SystemRandom random;
  net::SmtpServer options;
  options.url = server.url();
  options.from = "playground@example.org";
  options.plain = true;
  SmtpMailer mailer(options, clock, random);
  ASSERT_TRUE(mailer.send({"ada@example.org",
                           "Your code",
                           "first line\n.\nlast line\n",
                           "ada",
                           {std::numeric_limits<std::int64_t>::max()}}));
  auto lines = server.lines.get_future().get();
  EXPECT_TRUE(contains(lines, "MAIL FROM:<playground@example.org>"));
  EXPECT_TRUE(contains(lines, "RCPT TO:<ada@example.org>"));
  EXPECT_TRUE(contains(lines, "Subject: Your code"));
  EXPECT_TRUE(contains(lines, "first line"));
  EXPECT_TRUE(contains(lines, "..")) << "a lone dot would end the mail";
  EXPECT_TRUE(contains(lines, "last line"));
}

/// Takes any number of mails, once it is allowed to greet, and records to whom they are.
class BusyMailServer {
 public:
  BusyMailServer() {
    options.url = listener_.url;
    options.from = "playground@example.org";
    options.plain = true;
    thread_ = std::thread([this] { serve(); });
  }
  ~BusyMailServer() {
    shutdown(listener_.fd.get(), SHUT_RDWR);
    thread_.join();
  }
  void greet() { may_greet_.set_value(); }
  /// The recipients of the mails up to that one, in order.
  std::vector<std::string> await(const std::string& recipient) {
    MutexLock lock(mutex_);
    while (!contains(recipients_, recipient))
      if (!changed_.wait_for(mutex_, std::chrono::seconds(50))) break;
    return recipients_;
  }

  net::SmtpServer options;

 private:
  void serve() {
    may_greet_.get_future().wait();
    for (;;) {
      UniqueFd peer(accept(listener_.fd.get(), nullptr, nullptr));
      if (!peer) return;
      converse(peer.get(), [this](const std::string& line) {
        if (!line.starts_with("RCPT TO:<")) return;
        MutexLock lock(mutex_);
        recipients_.push_back(line.substr(9, line.find('>') - 9));
        changed_.notify_all();
      });
    }
  }

  Listener listener_{100};
  std::promise<void> may_greet_;
  Mutex mutex_;
  Condition changed_;
  std::vector<std::string> recipients_ PLAYFS_GUARDED_BY(mutex_);
  std::thread thread_;
};

service::Mail mail_of(const std::string& client, const std::string& to, WallTime good_until) {
  return {to, "Your code", "code\n", client, good_until};
}

TEST(SmtpMailer, StrangersDelayNobodyElsesMail) {
  BusyMailServer server;
  test::ManualClock clock;
  SystemRandom random;
  SmtpMailer mailer(server.options, clock, random);
  const WallTime later{clock.wall().nanoseconds + 1};
  for (int i = 0; i < 60; ++i)
    ASSERT_TRUE(mailer.send(mail_of("stranger" + std::to_string(i % 3), "x" + std::to_string(i) + "@x.org", later)));
  ASSERT_TRUE(mailer.send(mail_of("owner", "owner@example.org", later)));
  server.greet();
  const auto recipients = server.await("owner@example.org");
  ASSERT_TRUE(contains(recipients, "owner@example.org"));
  // Those that were being sent, and what the connections take before their turn comes.
  EXPECT_LE(recipients.size(), 3 * SmtpMailer::kConnections);
}

TEST(SmtpMailer, HoldsALimitedNumberAndNoneThatHasExpired) {
  BusyMailServer server;
  test::ManualClock clock;
  SystemRandom random;
  SmtpMailer mailer(server.options, clock, random);
  const WallTime soon{clock.wall().nanoseconds + 1'000'000'000}, later{soon.nanoseconds + 1'000'000'000};
  std::size_t taken = 0;
  Status sent;
  while ((sent = mailer.send(mail_of("stranger", "x@x.org", soon))) && taken < 2 * SmtpMailer::kMostWaiting) ++taken;
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::busy);
  EXPECT_GE(taken, SmtpMailer::kMostWaiting);
  ASSERT_TRUE(mailer.send(mail_of("owner", "owner@example.org", later))) << "a stranger's makes room";
  clock.advance(std::chrono::milliseconds(1500));
  server.greet();
  EXPECT_TRUE(contains(server.await("owner@example.org"), "owner@example.org"));
  // Behind all others of its client.
  while (!mailer.send(mail_of("stranger", "end@x.org", later))) std::this_thread::yield();
  const auto recipients = server.await("end@x.org");
  EXPECT_LE(recipients.size(), SmtpMailer::kConnections + 2) << "those that had begun, and the two that are still good";
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
  options.url = server.url();
  options.from = "playground@example.org";
  auto sent = net::send_mail(options, {"ada@example.org", "s", "t\n", "id@example.org", {}});
  EXPECT_FALSE(sent);
  for (const auto& line : server.lines.get_future().get()) EXPECT_FALSE(line.starts_with("MAIL")) << line;
}

}  // namespace
}  // namespace playfs::runtime
