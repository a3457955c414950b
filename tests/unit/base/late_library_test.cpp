#include "base/late_library.h"

#include <zlib.h>

#include <gtest/gtest.h>

namespace playfs {
namespace {

constinit const LateLibrary kThere("libz.so.1", "zlib1g");
constinit const LateLibrary kMissing("libplayfs-has-none.so.7", "libplayfs-has-none7");

TEST(LateLibrary, ItsFunctionsAreCalledAsDeclared) {
  const LateFunction<decltype(::crc32)> late(kThere, "crc32");
  const auto* bytes = reinterpret_cast<const Bytef*>("playfs");
  EXPECT_EQ(late(0UL, bytes, 6U), late(late(0UL, bytes, 3U), bytes + 3, 3U));
  EXPECT_NE(late(0UL, bytes, 6U), 0U);
  EXPECT_TRUE(kThere.load());
}

TEST(LateLibrary, OneThatIsMissingIsNamed) {
  const auto loaded = kMissing.load();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::not_supported);
  EXPECT_NE(loaded.error().message.find("libplayfs-has-none.so.7"), std::string::npos);
  EXPECT_EQ(loaded.error().hint, "sudo apt install libplayfs-has-none7");
}

TEST(LateLibraryDeathTest, AFunctionThatIsMissingEndsTheProcessAsTheLoaderDoes) {
  const LateFunction<decltype(::crc32)> library(kMissing, "crc32"), function(kThere, "no_such_function");
  EXPECT_EXIT(library(0UL, nullptr, 0U), testing::ExitedWithCode(127),
              "playfs: .*libplayfs-has-none.*\nTry: sudo apt install libplayfs-has-none7\n");
  EXPECT_EXIT(function(0UL, nullptr, 0U), testing::ExitedWithCode(127),
              "playfs: .*no_such_function.*\nTry: sudo apt install zlib1g\n");
}

}  // namespace
}  // namespace playfs
