#include "base/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace playfs {
namespace {

std::vector<ErrorCode> all_codes() {
  std::vector<ErrorCode> codes;
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) codes.push_back(static_cast<ErrorCode>(i));
  return codes;
}

TEST(ErrorTraits, EachCodeIsFoundByItsNameWhichIsItsOwn) {
  std::set<std::string_view> names;
  for (ErrorCode code : all_codes()) {
    EXPECT_TRUE(names.insert(name_of(code)).second) << name_of(code);
    EXPECT_EQ(code_named(name_of(code)), code);
  }
  EXPECT_EQ(code_named("no such code"), ErrorCode::internal);
}

TEST(ErrorTraits, WhatNeverReachedADecisionMayBeRepeated) {
  for (ErrorCode code : all_codes())
    EXPECT_TRUE(is_transient(code) || traits_of(code).reached == Reached::decision) << name_of(code);
}

TEST(ErrorTraits, WhatTheDiskOrOtherWorkHoldsUpMayBeRepeated) {
  for (ErrorCode code : {ErrorCode::io, ErrorCode::busy, ErrorCode::no_space, ErrorCode::quota_exceeded})
    EXPECT_TRUE(is_transient(code)) << name_of(code);
}

// A publication repeats what is transient. Repeating anything else would send for ever what the service has refused.
TEST(ErrorTraits, WhatWasRefusedIsNotTransient) {
  for (ErrorCode code : {ErrorCode::permission_denied, ErrorCode::unauthorized, ErrorCode::record_too_large,
                         ErrorCode::file_too_big, ErrorCode::not_found, ErrorCode::invalid_argument})
    EXPECT_FALSE(is_transient(code)) << name_of(code);
}

TEST(ErrorTraits, KnownDataServesDuringAnOutageButNotForACallerThatLeft) {
  for (ErrorCode code :
       {ErrorCode::unreachable, ErrorCode::timed_out, ErrorCode::rate_limited, ErrorCode::offline, ErrorCode::protocol})
    EXPECT_TRUE(is_outage(code)) << name_of(code);
  for (ErrorCode code : {ErrorCode::interrupted, ErrorCode::not_found, ErrorCode::unauthorized, ErrorCode::io})
    EXPECT_FALSE(is_outage(code)) << name_of(code);
}

TEST(ErrorFromErrno, KeepsWhatTheCallerCanActOn) {
  EXPECT_EQ(error_from_errno(ENOSPC, "write").code, ErrorCode::no_space);
  EXPECT_EQ(error_from_errno(EUCLEAN, "write").code, ErrorCode::io);
  EXPECT_EQ(error_from_errno(ENOENT, "open x").message, "open x: No such file or directory");
}

}  // namespace
}  // namespace playfs
