// A service over a store of its own in a private directory, with a clock and a random source that tests control.
#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "service/service.h"
#include "service/sqlite_store.h"
#include "support/manual_time.h"
#include "support/temporary_directory.h"
#include "wire/json.h"

namespace playfs::service {

class ServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = SqliteStore::open(directory / "playground.db", Database::Durability::normal, clock, random);
    ASSERT_TRUE(opened) << opened.error().message;
    store = *std::move(opened);
    serve({});
  }

  /// Restarts the service with other options, over the same store.
  void serve(ServiceOptions options) {
    options.site_hosts = {"play.test", "play.example.org"};
    service = std::make_unique<Service>(*store, *store, std::move(options));
  }

  /// An API key of the account of `email`.
  std::string key_of(const std::string& email) {
    std::string key = random.uuid();
    EXPECT_TRUE(store->sign_in(email, hash_of_secret(key)));
    return key;
  }

  HttpResponse send(const std::string& method, const std::string& path, const std::string& body = {},
                    HttpHeaders headers = {}, const std::string& address = "192.0.2.1") {
    HttpRequest request{method, "/.site/data" + path, std::move(headers), body};
    if (!request.headers.get("Host")) request.headers.add("Host", "play.test");
    if (!request.headers.get("Origin") && method == "POST") request.headers.add("Origin", "https://play.test");
    if (!request.headers.get("Content-Type") && !body.empty()) request.headers.add("Content-Type", "application/json");
    return service->handle(request, {address});
  }

  /// The JSON of a response, which must be an object.
  static JsonObject json(const HttpResponse& response) {
    auto parsed = wire::parse_json(response.body);
    EXPECT_TRUE(parsed && parsed->object()) << response.body;
    return parsed && parsed->object() ? *parsed->object() : JsonObject();
  }

  /// The record in a response that must be a success.
  static JsonObject record(const HttpResponse& response) {
    EXPECT_EQ(response.status, 200) << response.body;
    auto whole = json(response);
    const Json* found = whole.find("record");
    EXPECT_TRUE(found && found->object()) << response.body;
    return found && found->object() ? *found->object() : JsonObject();
  }

  static std::string text(const JsonObject& object, std::string_view name) {
    const Json* value = object.find(name);
    EXPECT_TRUE(value && value->string()) << "no text member " << name;
    return value && value->string() ? *value->string() : std::string();
  }

  static void expect_problem(const HttpResponse& response, int status, const std::string& code) {
    EXPECT_EQ(response.status, status) << response.body;
    auto problem = json(response);
    EXPECT_EQ(text(problem, "code"), code);
    EXPECT_FALSE(text(problem, "error").empty());
    EXPECT_FALSE(text(problem, "message").empty());
  }

  test::TemporaryDirectory directory;
  test::ManualClock clock;
  SystemRandom random;
  std::unique_ptr<SqliteStore> store;
  std::unique_ptr<Service> service;
};

}  // namespace playfs::service
