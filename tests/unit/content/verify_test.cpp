#include "content/verify.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace playfs::content {
namespace {

FileEntry entry(std::string hash, std::optional<std::uint64_t> size, std::vector<std::string> chunks = {}) {
  FileEntry made;
  made.hash_claim = std::move(hash);
  made.size_claim = size;
  for (auto& id : chunks) made.chunks.emplace_back(std::move(id));
  return made;
}

std::string hash_of(std::string_view text) { return ContentHash::of(text).hex(); }

TEST(CheckContent, AbsentAndOpaqueClaimsPromiseNothing) {
  EXPECT_TRUE(check_content(entry("", std::nullopt), "anything"));
  EXPECT_TRUE(check_content(entry("fnv:12345", std::nullopt), "anything"));
}

TEST(CheckContent, ASha256ClaimMustMatchInEachOfItsForms) {
  for (const std::string& form : {hash_of("right"), "sha256:" + hash_of("right")}) {
    EXPECT_TRUE(check_content(entry(form, 5), "right"));
    EXPECT_EQ(check_content(entry(form, 5), "wrong").error().code, ErrorCode::corrupt);
  }
}

TEST(CheckContent, SizesMayHaveBeenCountedInCharacters) {
  const std::string text = "na\u00efve \U0001F600";  // 6 characters of text, one beyond the basic plane
  EXPECT_TRUE(check_content(entry("", text.size()), text));
  EXPECT_TRUE(check_content(entry("", count_code_points(text)), text));
  EXPECT_TRUE(check_content(entry("", count_utf16_units(text)), text));
  EXPECT_NE(count_code_points(text), count_utf16_units(text));
  for (std::uint64_t lie :
       {std::uint64_t{0}, std::uint64_t{text.size() + 1}, std::uint64_t{text.size() - 1}, ~std::uint64_t{0}})
    EXPECT_EQ(check_content(entry("", lie), text).error().code, ErrorCode::corrupt) << lie;
}

TEST(CheckContent, BytesAreNotCountedInCharacters) {
  FileEntry binary = entry("", 1);
  binary.encoding = ContentEncoding::base64;
  EXPECT_FALSE(check_content(binary, "\u00ef"));
}

class Assemble : public testing::Test {
 protected:
  Result<std::string> assembled(const FileEntry& of, const std::vector<FileChunk>& chunks,
                                std::uint64_t ceiling = 1000) {
    std::vector<const FileChunk*> pointers;
    for (const auto& chunk : chunks) pointers.push_back(&chunk);
    return assemble(of, pointers, ceiling);
  }
};

TEST_F(Assemble, PutsPiecesTogetherAndDecodes) {
  EXPECT_EQ(assembled(entry("", 6, {"1", "2"}), {{ChunkId("1"), "", "abc"}, {ChunkId("2"), "", "def"}}).value(),
            "abcdef");
  FileEntry binary = entry(hash_of(std::string("\0\xff", 2)), 2, {"1", "2"});
  binary.encoding = ContentEncoding::base64;
  EXPECT_EQ(assembled(binary, {{ChunkId("1"), "", "AP"}, {ChunkId("2"), "", "8="}}).value(), std::string("\0\xff", 2));
  EXPECT_EQ(assembled(binary, {{ChunkId("1"), "", "AP"}, {ChunkId("2"), "", "8"}}).error().code, ErrorCode::corrupt);
}

TEST_F(Assemble, TheCeilingCountsWhatArrivedNotWhatWasClaimed) {
  EXPECT_TRUE(assembled(entry("", std::nullopt, {"1"}), {{ChunkId("1"), "", std::string(10, 'x')}}, 10));
  EXPECT_EQ(assembled(entry("", 3, {"1"}), {{ChunkId("1"), "", std::string(11, 'x')}}, 10).error().code,
            ErrorCode::refused_input);
  FileEntry binary = entry("", std::nullopt, {"1"});
  binary.encoding = ContentEncoding::base64;
  EXPECT_TRUE(assembled(binary, {{ChunkId("1"), "", to_base64(std::string(10, 'x'))}}, 10));
  EXPECT_EQ(assembled(binary, {{ChunkId("1"), "", to_base64(std::string(11, 'x'))}}, 10).error().code,
            ErrorCode::refused_input);
}

TEST_F(Assemble, AChunksHashIsCheckedIfTheFileHasNone) {
  const FileEntry opaque = entry("opaque", 6, {"1", "2"});
  const FileChunk second{ChunkId("2"), "opaque", "def"};
  EXPECT_TRUE(assembled(opaque, {{ChunkId("1"), hash_of("abc"), "abc"}, second}));
  EXPECT_TRUE(assembled(opaque, {{ChunkId("1"), hash_of("abcdef"), "abc"}, second}))
      << "the whole file's hash, as others may write it";
  EXPECT_EQ(assembled(opaque, {{ChunkId("1"), hash_of("other"), "abc"}, second}).error().code, ErrorCode::corrupt);
  EXPECT_TRUE(assembled(entry(hash_of("abcdef"), 6, {"1", "2"}), {{ChunkId("1"), hash_of("other"), "abc"}, second}))
      << "the file's hash decides";
}

TEST(OriginKey, TellsDifferentOriginsApart) {
  const FileEntry base = entry("opaque", 6, {"ab", "c"});
  EXPECT_EQ(origin_key(base), origin_key(entry("another opaque one", 6, {"ab", "c"})));
  EXPECT_NE(origin_key(base), origin_key(entry("opaque", 6, {"a", "bc"})));
  EXPECT_NE(origin_key(base), origin_key(entry("opaque", 6, {"ab 1:c"})));
  EXPECT_NE(origin_key(base), origin_key(entry("opaque", 7, {"ab", "c"})));
  EXPECT_NE(origin_key(base), origin_key(entry(hash_of("x"), 6, {"ab", "c"})));
  FileEntry binary = base;
  binary.encoding = ContentEncoding::base64;
  EXPECT_NE(origin_key(base), origin_key(binary));
}

}  // namespace
}  // namespace playfs::content
