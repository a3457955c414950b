#include <gtest/gtest.h>

#include "support.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::wire {
namespace {

FileEntry entry(std::string_view text) {
  std::string why;
  auto decoded = decode_file_entry(json(text), &why);
  EXPECT_TRUE(decoded) << text << ": " << why;
  return decoded.value_or(FileEntry());
}

TEST(FileEntry, IsReadAsPublished) {
  auto file = entry(R"({"h":"x","s":3,"inline":"abc","m":"100755","author":"me"})");
  EXPECT_EQ(file.hash_claim, "x");
  EXPECT_EQ(file.size_claim, 3u);
  EXPECT_EQ(file.inline_text, "abc");
  EXPECT_EQ(file.mode, FileMode::executable);
  EXPECT_EQ(file.extra, (JsonObject{{"author", "me"}}));

  file = entry(R"({"h":"x","s":3,"c":["1",2],"e":"base64"})");
  EXPECT_FALSE(file.inline_text);
  EXPECT_EQ(file.chunks, (std::vector{ChunkId("1"), ChunkId("2")}));
  EXPECT_EQ(file.encoding, ContentEncoding::base64);
}

TEST(FileEntry, ContentIsInlineOrChunked) {
  EXPECT_EQ(entry(R"({"inline":""})").inline_text, "");
  EXPECT_EQ(entry(R"({"inline":"a","c":[]})").inline_text, "a");
  EXPECT_EQ(entry(R"({"inline":"","c":["1"]})").inline_text, std::nullopt);
  EXPECT_EQ(entry(R"({"inline":null,"c":["1"]})").chunks.size(), 1u);
  EXPECT_EQ(entry(R"({"c":[]})").chunks.size(), 0u);
}

TEST(FileEntry, RefusesWhatWouldShowWrongBytes) {
  const std::string long_id(kMaxIdLength + 1, 'x');
  for (const std::string& text :
       {std::string("1"), std::string("null"), std::string("[]"), std::string("{}"), std::string(R"({"h":"x","s":0})"),
        std::string(R"({"inline":5})"), std::string(R"({"inline":{},"c":["1"]})"),
        std::string(R"({"inline":"a","c":["1"]})"), std::string(R"({"c":"1"})"), std::string(R"({"c":[""]})"),
        std::string(R"({"c":[null]})"), std::string(R"({"c":[1.5]})"), R"({"c":[")" + long_id + R"("]})",
        std::string(R"({"inline":"a","e":"gzip"})"), std::string(R"({"inline":"a","e":1})"),
        std::string(R"({"inline":"a","inline":"b"})")}) {
    std::string why;
    EXPECT_FALSE(decode_file_entry(json(text), &why)) << text;
    EXPECT_FALSE(why.empty()) << text;
  }
}

TEST(FileEntry, ImpossibleSizesAreNoClaims) {
  for (auto size : {"-1", "1.5", "1e300", "99999999999999999999", "\"3\"", "null", "{}"})
    EXPECT_FALSE(entry(R"({"inline":"abc","s":)" + std::string(size) + "}").size_claim) << size;
  EXPECT_EQ(entry(R"({"inline":"abc","s":3.0})").size_claim, 3u);
}

TEST(FileEntry, KeepsItsSpellingUntilItsMeaningChanges) {
  const Json published = json(R"({"s":3.0,"c":[7],"m":100755,"e":"text","inline":""})");
  auto file = *decode_file_entry(published);
  EXPECT_EQ(file.mode, FileMode::executable);
  EXPECT_EQ(encode_file_entry(file), published);

  file.mode = FileMode::regular;
  file.size_claim = 4;
  file.chunks = {};
  file.inline_text = "ab";
  EXPECT_EQ(to_text(encode_file_entry(file)), R"({"s":4,"e":"text","inline":"ab"})");

  auto emptied = *decode_file_entry(json(R"({"inline":"a","c":[]})"));
  emptied.inline_text.reset();
  emptied.chunks = {ChunkId("1")};
  EXPECT_EQ(to_text(encode_file_entry(emptied)), R"({"c":["1"]})");
}

TEST(FileEntry, KeepsFieldsThatSayNothing) {
  for (auto text : {R"({"inline":null,"c":[]})", R"({"inline":null,"c":["1"]})", R"({"inline":"","c":["1"]})",
                    R"({"inline":"","c":[]})", R"({"inline":"a","c":null})",
                    R"({"inline":"a","m":null,"s":null,"h":null,"e":null})"})
    EXPECT_EQ(encode_file_entry(entry(text)), json(text)) << text;
}

TEST(Manifest, RefusesEntryByEntry) {
  const Json published =
      json(R"({"files":{"a":{"inline":"x"},"../b":{"inline":"x"},"c":7,"d":{"inline":"x"},"d/e":{"c":[]}},"v":1})");
  auto manifest = decode_manifest(published);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->files.size(), 2u);
  EXPECT_TRUE(manifest->files.contains("a"));
  EXPECT_TRUE(manifest->files.contains("d/e"));
  EXPECT_EQ(manifest->refused.size(), 3u);
  EXPECT_EQ(encode_manifest(*manifest), published);

  // A new file with the name of a refused one replaces it.
  manifest->files["c"].inline_text = "new";
  EXPECT_EQ(to_text(*encode_manifest(*manifest).object()->find("files")->object()->find("c")), R"({"inline":"new"})");
}

TEST(Manifest, FailsAsAWholeWhereItIsAmbiguous) {
  for (auto text : {"null", "[]", R"({"files":[]})", R"({"files":{"a":{"inline":""},"a":{"inline":"x"}}})",
                    R"({"files":{},"files":{"a":{"inline":""}}})"}) {
    auto manifest = decode_manifest(json(text));
    ASSERT_FALSE(manifest) << text;
    EXPECT_EQ(manifest.error().code, ErrorCode::refused_input);
  }
  EXPECT_TRUE(decode_manifest(json("{}")));
}

TEST(Manifest, KnowsItsTransaction) {
  const std::string tx = "0123456789abcdef0123456789abcdef";
  EXPECT_EQ(decode_manifest(json(R"({"files":{},"tx":")" + tx + "\"}"))->tx, tx);
  for (auto other : {"\"\"", "\"0123\"", "7", "\"0123456789ABCDEF0123456789abcdef\""}) {
    const Json published = json(R"({"files":{},"tx":)" + std::string(other) + "}");
    auto manifest = decode_manifest(published);
    ASSERT_TRUE(manifest);
    EXPECT_EQ(manifest->tx, "");
    EXPECT_EQ(encode_manifest(*manifest), published);
    manifest->tx = tx;
    EXPECT_EQ(to_text(encode_manifest(*manifest)), R"({"files":{},"tx":")" + tx + "\"}");
  }
}

TEST(Manifest, ComesOutAsItWentIn) {
  EXPECT_TRUE(rc::check([] {
    auto field = rc::gen::element<std::string>("h", "s", "m", "e", "inline", "c", "x", "y");
    auto value = rc::gen::oneOf(
        any_json(1), any_number(),
        rc::gen::element(Json(""), Json("text"), Json("base64"), Json("100755"), Json("120000"), Json("100644"),
                         Json(Json::Array{}), Json(Json::Array{"1", "2"}), Json(Json::Array{1, 2}), Json(3)));
    auto entry = rc::gen::oneOf(any_json(1),
                                rc::gen::map(object_of(field, value), [](JsonObject o) { return Json(std::move(o)); }));
    auto path = rc::gen::oneOf(any_text(), rc::gen::element<std::string>("a", "a/b", "a/b/c", "b", ".git", "../x"));
    Json manifest = *rc::gen::map(object_of(rc::gen::element<std::string>("tx", "v", "z"), any_json(2)),
                                  [](JsonObject o) { return Json(std::move(o)); });
    manifest.object()->set("files", *object_of(path, entry));
    auto decoded = decode_manifest(manifest);
    RC_ASSERT(decoded.has_value());
    RC_ASSERT(encode_manifest(*decoded) == manifest);
    for (const auto& [name, file] : decoded->files) {
      auto again = decode_file_entry(encode_file_entry(file));
      RC_ASSERT(again == file);
    }
  }));
}

}  // namespace
}  // namespace playfs::wire
