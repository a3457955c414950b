#include <fstream>

#include <gtest/gtest.h>

#include "support.h"
#include "support/scripted_server.h"
#include "support/temporary_directory.h"

namespace playfs::net {
namespace {

class Tls : public ::testing::Test {
 protected:
  Tls() { std::ofstream(ca_file) << identity.certificate; }

  /// On a slow machine, or with a sanitizer, reading all of the system's authorities takes longer than a connection
  /// may.
  static Result<HttpResponse> get_patiently(CurlTransport& transport) {
    return get(transport, "/", {.connect = std::chrono::minutes(5), .total = std::chrono::minutes(5)});
  }

  static void answer_ok(test::ScriptedServer::Connection& connection) {
    while (connection.read_request()) connection.answer(200, "safe");
  }

  test::TlsIdentity identity;
  const test::TemporaryDirectory directory;
  const std::string ca_file = directory / "authority.pem";
};

TEST_F(Tls, AnOwnAuthorityIsTrusted) {
  test::ScriptedServer server(answer_ok, {.identity = &identity});
  auto response = get_patiently(*connect_to(server.url(), {.ca_file = ca_file}));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "safe");
}

TEST_F(Tls, AnUnknownCertificateIsRefusedForGood) {
  test::ScriptedServer server(answer_ok, {.identity = &identity});
  auto response = get_patiently(*connect_to(server.url()));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::protocol);
  EXPECT_NE(response.error().hint.find("cafile"), std::string::npos);
}

TEST_F(Tls, ACertificateForAnotherHostIsRefused) {
  test::ScriptedServer server(answer_ok, {.identity = &identity});
  std::string by_name = "https://localhost" + server.url().substr(server.url().rfind(':'));
  auto response = get_patiently(*connect_to(by_name, {.ca_file = ca_file}));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::protocol);
}

TEST_F(Tls, OldVersionsAreRefused) {
  test::ScriptedServer server(answer_ok, {.identity = &identity, .only_tls_1_1 = true});
  EXPECT_FALSE(get_patiently(*connect_to(server.url(), {.ca_file = ca_file})));
}

}  // namespace
}  // namespace playfs::net
