// The site under test, seen from outside: any base URL, or a site of our own that lives as long as the process.
//
//   PLAYFS_CONFORMANCE_URL        a site to test, "https://example.org"; its data is below /.site/data
//   PLAYFS_CONFORMANCE_KEY        an API key for that site; without it, cases about owners are skipped there
//   PLAYFS_CONFORMANCE_ACCESS     without a URL: "serve" for a `playfs serve` of our own, the binary that PLAYFS names
//                                 (the default), "local" for our own service in the same process
//   PLAYFS_CONFORMANCE_NEW_STORE  a program that prints a --store for each `playfs serve` of our own; without it, a
//                                 directory
//   PLAYFS_CONFORMANCE_LOG        with "serve": the access log of all servers, for test_openapi.py
//
// One run stays within the API document's write limits, so it can test a public site once an hour.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include <gtest/gtest.h>

#include "base/executor.h"
#include "model/json.h"
#include "net/transport.h"
#include "runtime/local_playground.h"
#include "service/outbox.h"
#include "support/temporary_directory.h"

namespace playfs::conformance {

struct Response {
  int status = 0;
  HttpHeaders headers;
  std::string text;
  Json body;  ///< null if the answer was not JSON

  /// A member of the body's object; null if there is none.
  [[nodiscard]] Json member(std::string_view name) const;
  /// The record of a success, wrapped or bare.
  [[nodiscard]] Json record() const;
};

/// A member of an object, or for a record, of its `data`; null if there is none.
Json field(const Json& object, std::string_view name);
/// The same as text; empty if it is not text.
std::string text_field(const Json& object, std::string_view name);

class Site {
 public:
  /// The site under test.
  static Site& under_test();
  /// A new, empty site of our own, reached in the same way; nullptr if a URL is tested.
  static std::unique_ptr<Site> fresh();

  ~Site();

  /// `path` is below the base path. Sends the required Origin and Content-Type, unless `headers` names them; a header
  /// with an empty value is left out.
  Response send(const std::string& method, const std::string& path, std::string body = {}, HttpHeaders headers = {});
  Response get(const std::string& path) { return send("GET", path); }
  Response post(const std::string& collection, const Json& fields, HttpHeaders headers = {});
  Response patch(const std::string& path, const Json& fields, HttpHeaders headers = {});
  /// The account endpoints, outside the base path.
  Response account(const std::string& step, const Json& body);

  /// Creates a record with `fields`; fails the test if that fails.
  Json create(const std::string& collection, const Json& fields, HttpHeaders headers = {});
  /// A record of the collection with its declared fields, created on first use and then kept.
  const Json& sample(const std::string& collection);

  [[nodiscard]] bool is_own() const { return directory_.has_value(); }
  /// The Authorization header of an account; nullopt if none is available.
  std::optional<HttpHeaders> owner();
  /// The steward's; nullopt for a site that is not our own.
  [[nodiscard]] std::optional<HttpHeaders> steward() const;
  /// The newest code sent to that address, on a site of our own.
  [[nodiscard]] std::string mailed_code(const std::string& email) const;
  [[nodiscard]] const std::string& origin() const { return transport_->origin(); }

 private:
  Site() = default;
  static std::unique_ptr<Site> open_own(const std::string& access);
  void open_in_process();
  [[nodiscard]] std::string new_store() const;
  void start_server();
  Response send_to(const std::string& method, const std::string& target, std::string body, HttpHeaders headers);

  std::optional<test::TemporaryDirectory> directory_;  // of a site of our own
  pid_t server_ = 0;
  SystemClock clock_;
  SystemRandom random_;
  ThreadPool pool_{8};
  std::unique_ptr<service::Outbox> outbox_;
  std::unique_ptr<runtime::LocalPlayground> playground_;
  std::unique_ptr<net::Transport> transport_;
  std::map<std::string, Json> samples_;
  std::optional<std::string> key_;
};

/// The declared fields of a collection as the document shows them, filled in.
Json declared_fields(const std::string& collection);

extern const char* const kCollections[8];

/// Text that no other test uses.
std::string unique_text();

/// Checks the document's rules for every failure.
void expect_error(const Response& response, int status, const std::string& code);
/// Checks a refusal whose status the document leaves open.
void expect_refusal(const Response& response);

}  // namespace playfs::conformance
