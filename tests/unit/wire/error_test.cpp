#include <gtest/gtest.h>

#include "wire/records.h"

namespace playfs::wire {
namespace {

using namespace std::chrono_literals;

ErrorCode code(int status, std::string_view body = "") { return decode_error(status, body, std::nullopt).code; }

TEST(DecodeError, GoesByStatusAndCode) {
  EXPECT_EQ(code(429), ErrorCode::rate_limited);
  EXPECT_EQ(code(403), ErrorCode::permission_denied);
  EXPECT_EQ(code(401), ErrorCode::unauthorized);
  EXPECT_EQ(code(404), ErrorCode::not_found);
  EXPECT_EQ(code(413), ErrorCode::record_too_large);
  EXPECT_EQ(code(400, R"({"code":"record_too_large"})"), ErrorCode::record_too_large);
  EXPECT_EQ(code(422, R"({"code":"something_new"})"), ErrorCode::invalid_argument);
  EXPECT_EQ(code(500), ErrorCode::unreachable);
  EXPECT_EQ(code(502, "<html>"), ErrorCode::unreachable);
  EXPECT_EQ(code(504), ErrorCode::timed_out);
  EXPECT_EQ(code(500, R"({"code":"not_found"})"), ErrorCode::unreachable);
  EXPECT_EQ(code(301), ErrorCode::protocol);
  EXPECT_EQ(code(204), ErrorCode::protocol);
}

TEST(DecodeError, KeepsWhatTheServiceSaid) {
  auto error = decode_error(
      429,
      R"({"error":"e","code":"rate_limited","message":"slow\u001b[31m\ndown","retry_after":7,"docs_url":"https://d"})",
      "99");
  EXPECT_EQ(error.http_status, 429);
  EXPECT_EQ(error.remote_code, "rate_limited");
  EXPECT_EQ(error.retry_after, 7s);
  EXPECT_NE(error.message.find("slow\\x1b[31m\\x0adown"), std::string::npos) << error.message;
  EXPECT_EQ(error.hint, "see https://d");
}

TEST(DecodeError, SaysHowToSignIn) {
  EXPECT_EQ(decode_error(401, "", std::nullopt).hint, "playfs login");
  EXPECT_EQ(decode_error(401, R"({"docs_url": "https://d"})", std::nullopt).hint, "playfs login; see https://d");
}

TEST(DecodeError, WaitsAreBoundedAndNeverShortened) {
  auto wait = [](std::string_view value) {
    return decode_error(429, R"({"retry_after":)" + std::string(value) + "}", std::nullopt).retry_after;
  };
  EXPECT_EQ(wait("2.1"), 3s);
  EXPECT_EQ(wait("\"5\""), 5s);
  EXPECT_EQ(wait("1e300"), 24h);
  EXPECT_EQ(wait("-1"), std::nullopt);
  EXPECT_EQ(wait("\"nan\""), std::nullopt);
  EXPECT_EQ(wait("{}"), std::nullopt);
  EXPECT_EQ(decode_error(429, "", "12").retry_after, 12s);
  EXPECT_EQ(decode_error(429, "", "soon").retry_after, std::nullopt);
}

TEST(DecodeError, LongMessagesAreCutBetweenCharacters) {
  std::string words;
  for (int i = 0; i < 1000; ++i) words += "ä€";
  auto error = decode_error(400, R"({"message":")" + words + "\"}", std::nullopt);
  EXPECT_LT(error.message.size(), 700u);
  EXPECT_EQ(error.message.find("\\x"), std::string::npos);
}

}  // namespace
}  // namespace playfs::wire
