#include "stage/store/entry_codec.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace playfs::stage {
namespace {

FileEntry rich_entry() {
  FileEntry entry;
  entry.hash_claim = "any form";
  entry.size_claim = 0;
  entry.mode = FileMode::symlink;
  entry.encoding = ContentEncoding::base64;
  entry.chunks = {ChunkId("one"), ChunkId("")};
  entry.extra.set("number", Json::Number{"1e400"});
  entry.extra.set("nested", JsonObject{{"list", Json::Array{true, false, nullptr, "text", JsonObject{}}}});
  return entry;
}

TEST(EntryCodec, EverythingComesBack) {
  for (FileEntry entry : {FileEntry(), rich_entry()}) {
    EXPECT_EQ(decode_entry(encode_entry(entry)), entry);
    entry.inline_text = "";
    EXPECT_EQ(decode_entry(encode_entry(entry)), entry);
  }
}

TEST(EntryCodec, DamagedBytesAreRefusedOrHarmless) {
  std::string good = encode_entry(rich_entry());
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_EQ(decode_entry(good.substr(0, size)), std::nullopt);
  EXPECT_EQ(decode_entry(good + "x"), std::nullopt);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x80);
    decode_entry(bad);  // under the sanitizers: this must not read past the end
  }
}

TEST(EntryCodec, WhatIsNestedTooDeepIsRefused) {
  for (bool in_lists : {false, true}) {
    Json nested = "text";
    for (int depth = 0; depth < 1'000; ++depth) {
      if (in_lists) nested = Json::Array{std::move(nested)};
      else nested = JsonObject{{"inner", std::move(nested)}};
    }
    FileEntry entry;
    entry.extra.set("nested", std::move(nested));
    EXPECT_EQ(decode_entry(encode_entry(entry)), std::nullopt);
  }
}

TEST(ConflictedCodec, EverythingComesBack) {
  const std::vector<Conflicted> list = {{"a path", "both changed it", true, ContentHash::of("left"), ""},
                                        {"d/x\n", "", false, std::nullopt, "d/x.head"},
                                        {"/(state) k", "both changed it", false, ContentHash::of("left"), ""},
                                        {"moved", "both changed it", true, ContentHash::of("left"), "", 4711},
                                        {".env", "ignored", false, std::nullopt, ".env.head", 0, true}};
  auto decoded = decode_conflicted(encode_conflicted(list));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, list);
}

TEST(ConflictedCodec, InOlderListsTheStateHasThePathOfAFile) {
  const auto left = ContentHash::of("left");
  auto list = decode_conflicted(encode_conflicted({{"(state) k", "both changed it", false, left, ""},
                                                   {"(manifest) f", "both changed it", false, std::nullopt, ""},
                                                   {"(state) notes", "both changed it", true, left, ""},
                                                   {"(state) data", "both changed it", false, left, "", 4711},
                                                   {"(state)/f", "both changed it", false, left, ""}}));
  ASSERT_TRUE(list);
  std::vector<std::string> paths;
  for (const auto& each : *list) paths.push_back(each.path);
  EXPECT_EQ(paths,
            (std::vector<std::string>{"/(state) k", "/(manifest) f", "(state) notes", "(state) data", "(state)/f"}));
}

TEST(TrackedCodec, EverythingComesBack) {
  const Tracked paths = {
      {"a path", TrackedAs::taken_in}, {"d/x\n", TrackedAs::staged}, {"grüße s", TrackedAs::taken_in}};
  EXPECT_EQ(decode_tracked(encode_tracked(paths)), paths);
  EXPECT_EQ(decode_tracked(""), Tracked());
  EXPECT_EQ(decode_tracked("Y!\n"), std::nullopt);
  EXPECT_EQ(decode_tracked("YQ==\n"), (Tracked{{"a", TrackedAs::taken_in}})) << "as older versions wrote it";
}

TEST(ConflictedCodec, WhatIsNoBase64IsRefused) {
  EXPECT_TRUE(decode_conflicted("YQ== Yg== m -\n"));
  EXPECT_FALSE(decode_conflicted("Y! Yg== m -\n"));
  EXPECT_FALSE(decode_conflicted("YQ== Y! m -\n"));
  EXPECT_FALSE(decode_conflicted("YQ== Yg== m - Y!\n"));
  EXPECT_FALSE(decode_conflicted("YQ== Yg== m no-hash\n"));
  EXPECT_FALSE(decode_conflicted("YQ== Yg== m1x -\n"));
  EXPECT_FALSE(decode_conflicted("YQ== Yg==  -\n"));
}

}  // namespace
}  // namespace playfs::stage
