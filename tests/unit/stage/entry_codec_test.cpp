#include "stage/entry_codec.h"

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
    decode_entry(bad);  // under the sanitizers this must not read past the end
  }
}

}  // namespace
}  // namespace playfs::stage
