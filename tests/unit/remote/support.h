// A client whose network and time are controlled by the test.
#pragma once

#include <gtest/gtest.h>

#include "remote/client.h"
#include "support/answer.h"
#include "support/manual_time.h"
#include "support/scripted_transport.h"
#include "wire/json.h"

namespace playfs::remote {

using test::Answer;

/// Counts up, so keys differ and delays are reproducible.
class CountingRandom final : public Random {
 public:
  void fill(std::span<std::byte> bytes) override {
    std::lock_guard lock(mutex_);
    for (auto& byte : bytes) byte = std::byte(next_++);
  }

 private:
  std::mutex mutex_;
  unsigned char next_ = 1;
};

class ClientTest : public ::testing::Test {
 protected:
  Client& client(ClientOptions options = {}) {
    if (!client_) client_ = std::make_unique<Client>(transport, executor, clock, random, std::move(options));
    return *client_;
  }
  void drop_client() { client_.reset(); }

  Answer<Record> get(CancelToken cancel = {}, std::string id = "a") {
    Answer<Record> answer;
    client().get_record("threads", std::move(id), std::move(cancel), answer.callback());
    return answer;
  }
  Answer<Record> create(std::string key, CancelToken cancel = {}, std::string collection = "threads") {
    Answer<Record> answer;
    client().create_record(std::move(collection), JsonObject{{"title", "t"}}, std::move(key), std::move(cancel),
                           answer.callback());
    return answer;
  }
  Answer<Record> patch(CancelToken cancel = {}) {
    Answer<Record> answer;
    client().patch_record("projects", "a", JsonObject{{"latest_revision", "r"}}, std::move(cancel), answer.callback());
    return answer;
  }

  test::ManualClock clock;
  test::ManualExecutor executor{clock};
  CountingRandom random;
  test::ScriptedTransport transport;

 private:
  std::unique_ptr<Client> client_;
};

inline const std::string kRecord = R"({"record":{"id":"a","title":"t"}})";

}  // namespace playfs::remote
