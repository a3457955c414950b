#include "cache/object_file.h"

#include <gtest/gtest.h>

namespace playfs::cache {
namespace {

class ObjectFile : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    for (std::size_t i = 0; i < GetParam(); ++i) content_.push_back(static_cast<char>(i * 31 + i / 251));
    hash_ = ContentHash::of(content_);
    file_ = content_ + make_trailer(hash_, content_);
  }
  std::optional<Trailer> parse(const std::string& file, const ContentHash& hash) {
    auto length = trailer_size(file.size());
    if (!length) return std::nullopt;
    return parse_trailer(std::string_view(file).substr(file.size() - *length), file.size(), hash);
  }
  std::string content_, file_;
  ContentHash hash_;
};

TEST_P(ObjectFile, TrailerGivesBackSizeAndChecksums) {
  auto trailer = parse(file_, hash_);
  ASSERT_TRUE(trailer);
  EXPECT_EQ(trailer->size, content_.size());
  ASSERT_EQ(trailer->checksums.size(), (content_.size() + kBlockSize - 1) / kBlockSize);
  for (std::size_t block = 0; block < trailer->checksums.size(); ++block)
    EXPECT_EQ(trailer->checksums[block],
              checksum_of(std::string_view(content_).substr(block * kBlockSize, kBlockSize)));
}

TEST_P(ObjectFile, AnotherObjectsTrailerIsRefused) { EXPECT_FALSE(parse(file_, ContentHash::of("something else"))); }

TEST_P(ObjectFile, EveryFlippedBitOfTheTrailerIsFound) {
  for (std::size_t at = content_.size(); at < file_.size(); ++at) {
    std::string damaged = file_;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
    EXPECT_FALSE(parse(damaged, hash_)) << "byte " << at;
  }
}

TEST_P(ObjectFile, CutOffOrZeroFilledFilesAreRefused) {
  for (std::size_t keep = 0; keep < file_.size(); keep += 1 + file_.size() / 97) {
    EXPECT_FALSE(parse(file_.substr(0, keep), hash_)) << keep;
    EXPECT_FALSE(parse(file_.substr(0, keep) + std::string(file_.size() - keep, '\0'), hash_)) << keep;
  }
  EXPECT_FALSE(parse(file_ + '\0', hash_));
}

INSTANTIATE_TEST_SUITE_P(Sizes, ObjectFile,
                         testing::Values(0, 1, kBlockSize - 1, kBlockSize, kBlockSize + 1, 5 * kBlockSize, 100'000));

}  // namespace
}  // namespace playfs::cache
