#include "app/output.h"

#include <gtest/gtest.h>

#include "app/exit_code.h"
#include "base/shell.h"
#include "support/test_io.h"
#include "wire/json.h"

namespace playfs::app {
namespace {

using test::TestIo;

TEST(ExitCodes, AreTheContract) {
  EXPECT_EQ(static_cast<int>(exit_code_for(ErrorCode::invalid_argument)), 2);
  EXPECT_EQ(static_cast<int>(exit_code_for(ErrorCode::rate_limited)), 4);
  EXPECT_EQ(static_cast<int>(exit_code_for(ErrorCode::not_found)), 5);
  for (ErrorCode code : {ErrorCode::permission_denied, ErrorCode::unauthorized, ErrorCode::not_permitted})
    EXPECT_EQ(static_cast<int>(exit_code_for(code)), 6);
  for (ErrorCode code : {ErrorCode::unreachable, ErrorCode::timed_out, ErrorCode::offline})
    EXPECT_EQ(static_cast<int>(exit_code_for(code)), 7);
  for (ErrorCode code : {ErrorCode::io, ErrorCode::internal, ErrorCode::corrupt, ErrorCode::busy, ErrorCode::no_space})
    EXPECT_EQ(static_cast<int>(exit_code_for(code)), 1);
}

TEST(Commands, ArePrintedAsAShellReadsThem) {
  EXPECT_EQ(shell_line({{"playfs", "mount", "-o", "project=p,agent=ada"}, {"https://example.org", "/home/ada/play"}}),
            "playfs mount -o project=p,agent=ada https://example.org /home/ada/play");
  EXPECT_EQ(shell_word("/my play/it's"), "'/my play/it'\\''s'");
  EXPECT_EQ(shell_word("two\nlines; it's a \\"), "$'two\\012lines; it\\047s a \\134'");
  for (const char* word : {"", "~", "a;b", "$HOME", "*", "#", "=ls"})
    EXPECT_EQ(shell_word(word), "'" + std::string(word) + "'");
}

TEST(Commands, TakeNoOperandForAnOption) {
  EXPECT_EQ(shell_operand("id"), "id");
  EXPECT_EQ(shell_operand("--help"), "-- --help");
  EXPECT_EQ(shell_operand("-o allow_other"), "-- '-o allow_other'");
  EXPECT_EQ(shell_line({{"playfs", "ls"}, {"id", "src"}, {"--site", "x"}}), "playfs ls id src --site x");
  EXPECT_EQ(shell_line({{"playfs", "ls"}, {"id", "-r f"}, {"--site", "x"}}), "playfs ls --site x -- id '-r f'");
  EXPECT_EQ(shell_line({{"playfs", "show"}, {""}}), "playfs show ''");
}

TEST(Json, SaysTheSameWithNothingForATerminalToObey) {
  const std::string text =
      "a\x7f\xc2\x9b"
      "31m\xe2\x80\xae\xc3\xa4\t\x1b";
  TestIo io;
  Output(io.io, true).document(JsonObject{{"name", text}});
  const std::string printed = io.out.str();
  EXPECT_NE(printed.find("a\\u007f\\u009b31m\\u202e\xc3\xa4\\t\\u001B"), std::string::npos) << printed;
  for (const char* raw : {"\x7f", "\xc2\x9b", "\xe2\x80\xae", "\x1b"}) EXPECT_EQ(printed.find(raw), std::string::npos);
  auto parsed = wire::parse_json(printed);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed->object()->find("name")->string(), text);
}

TEST(Errors, AreWordsOnStderrOrADocumentOnStdout) {
  Error error{
      ErrorCode::rate_limited, "post revision: too many\x1b[2J", "playfs status", std::chrono::seconds(30), 429, {}};
  TestIo words;
  EXPECT_EQ(Output(words.io, false).error(error), ExitCode::pending);
  EXPECT_EQ(words.out.str(), "");
  EXPECT_NE(words.err.str().find("30 s"), std::string::npos);
  EXPECT_NE(words.err.str().find("Try: playfs status"), std::string::npos);
  EXPECT_EQ(words.err.str().find('\x1b'), std::string::npos);

  TestIo data;
  Output(data.io, true).error(error);
  EXPECT_EQ(data.err.str(), "");
  auto document = wire::parse_json(data.out.str());
  ASSERT_TRUE(document);
  EXPECT_EQ(document->object()->find("schema_version")->integer(), 1);
  const JsonObject* fields = document->object()->find("error")->object();
  EXPECT_EQ(*fields->find("code")->string(), "rate_limited");
  EXPECT_EQ(fields->find("retryable")->boolean(), true);
  EXPECT_EQ(fields->find("retry_after_s")->integer(), 30);
  EXPECT_EQ(*fields->find("hint")->string(), "playfs status");
}

TEST(Errors, WithoutAHintOfTheirOwnHaveTheUsualOneOnce) {
  TestIo words;
  Output(words.io, false).error(Error{ErrorCode::unauthorized, "no key"});
  EXPECT_EQ(words.err.str(), "playfs: no key\nTry: playfs login\n");
  TestIo data;
  Output(data.io, true).error(Error{ErrorCode::unauthorized, "no key"});
  EXPECT_NE(data.out.str().find("\"hint\": \"playfs login\""), std::string::npos) << data.out.str();
}

}  // namespace
}  // namespace playfs::app
