// Witnesses: a few chunks whose requests show whether all chunks are still stored.
#include "publish/stored_chunks.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "support/publish_world.h"
#include "support/running_clock.h"

namespace playfs::publish {
namespace {

/// Has some chunks, and nothing else.
class ChunksOnly final : public Upstream {
 public:
  Status look_for_chunks(const std::vector<ChunkId>& ids, const ChunkLookedFor& answered) override {
    Status all;
    for (const auto& id : ids) {
      if (++asked > fails_after || (loses_each > 0 && asked % loses_each == 0))
        all = fail(ErrorCode::timed_out, "no answer came");
      else answered(id, gone.contains(id) ? nullptr : &found);
    }
    return all;
  }
  Result<Project> project() override { return nothing(); }
  Result<Look> look() override { return nothing(); }
  Result<wire::RecordPage> page(const std::string&, const std::string&) override { return nothing(); }
  Result<Record> get(const std::string&, const std::string&) override { return nothing(); }
  Result<std::string> holder_of(const std::string&, const std::string&) override { return nothing(); }
  bool may_carry(const std::string&, const std::string&, const std::string&) override { return false; }
  Result<RevisionTreePtr> revision(const RevisionId&) override { return nothing(); }
  Result<Bytes> content(const RevisionTreePtr&, const std::string&, const FileEntry&) override { return nothing(); }
  Result<std::vector<FileChunk>> chunks(const std::vector<ChunkId>&) override { return nothing(); }
  Result<Record> create(const std::string&, const Json&, const std::string&) override { return nothing(); }
  Status upload(const std::vector<Upload>&, const Acknowledged&) override { return nothing(); }
  Status move_head(const RevisionId&) override { return nothing(); }
  void learn(const std::string&, const Record&) override {}

  ChunkIds gone;
  Record found;
  std::size_t asked = 0, fails_after = SIZE_MAX, loses_each = 0;

 private:
  static tl::unexpected<Error> nothing() { return fail(ErrorCode::not_found, "nothing"); }
};

/// All chunks are other clients'.
Result<std::optional<ContentHash>> others(const ChunkId&) { return std::optional<ContentHash>(); }

TEST(StoredChunksTest, TheOneStoredLastIsAskedForWhicheverWasAnsweredLast) {
  // Eight uploads run in parallel, so the last may be answered before seven others, and the first after them.
  constexpr std::size_t kCount = 100, kTogether = 8;
  for (std::size_t late = 0; late < kTogether; ++late) {
    for (std::size_t lost : {late, kCount - 1 - late}) {
      ChunksOnly upstream;
      SystemClock clock;
      StoredChunks stored(upstream, others, clock);
      ChunkIds chunks;
      for (std::size_t i = 0; i < kCount; ++i) {
        const ChunkId chunk("chunk" + std::to_string(i));
        stored.stored(chunk);
        chunks.insert(chunk);
        if (i == lost) upstream.gone.insert(chunk);
      }
      auto found = stored.find_lost(RevisionId("r"), chunks);
      ASSERT_TRUE(found);
      EXPECT_EQ(*found, upstream.gone) << lost;
    }
  }
}

class MissingChunkTest : public testing::Test {
 protected:
  MissingChunkTest() { upstream.gone.insert(chunk); }
  bool is_gone_after(std::chrono::seconds time) {
    clock.advance(time);
    EXPECT_TRUE(stored.find_missing({chunk}));
    return stored.is_gone(chunk);
  }
  ChunksOnly upstream;
  test::RunningClock clock;
  StoredChunks stored{upstream, others, clock, std::chrono::minutes(2)};
  const ChunkId chunk{"c"};
};

TEST_F(MissingChunkTest, IsGoneOnceMissingForAsLongAsReadsMayLag) {
  using std::chrono::seconds;
  EXPECT_FALSE(is_gone_after(seconds(0)));
  stored.forget_all();
  EXPECT_FALSE(is_gone_after(seconds(100)));
  EXPECT_TRUE(is_gone_after(seconds(21)));
  upstream.gone.clear();
  EXPECT_FALSE(is_gone_after(seconds(1)));
  upstream.gone.insert(chunk);
  stored.forget_all();
  EXPECT_FALSE(is_gone_after(seconds(1))) << "it was seen in between";
}

TEST_F(MissingChunkTest, TwoChecksAreTooFewAndALongGapStartsOver) {
  using std::chrono::seconds;
  EXPECT_FALSE(is_gone_after(seconds(0)));
  EXPECT_FALSE(is_gone_after(seconds(130)));
  EXPECT_FALSE(is_gone_after(seconds(250)));
  EXPECT_FALSE(is_gone_after(seconds(119)));
  EXPECT_TRUE(is_gone_after(seconds(2)));
  stored.begin_anew();
  EXPECT_FALSE(stored.is_gone(chunk));
}

TEST(StoredChunksTest, FewAreAskedForWhileAllAreThere) {
  ChunksOnly upstream;
  SystemClock clock;
  StoredChunks stored(upstream, others, clock);
  ChunkIds chunks;
  for (int i = 0; i < 1000; ++i) {
    const ChunkId chunk("chunk" + std::to_string(i));
    stored.stored(chunk);
    chunks.insert(chunk);
  }
  ASSERT_TRUE(stored.find_lost(RevisionId("r"), chunks));
  EXPECT_LE(upstream.asked, 20u);
}

TEST(StoredChunksTest, WhatWasSeenWithTheRevisionIsNotAskedForAgainAfterAnError) {
  ChunksOnly upstream;
  SystemClock clock;
  StoredChunks stored(upstream, others, clock);
  ChunkIds chunks;
  for (int i = 0; i < 100; ++i) chunks.emplace("chunk" + std::to_string(i));
  int attempts = 0;
  Result<ChunkIds> lost = ChunkIds();
  do {
    upstream.fails_after = upstream.asked + 20;
    lost = stored.find_lost(RevisionId("r"), chunks);
    stored.forget_all();  // as after each error
  } while (!lost && ++attempts < 100);
  ASSERT_TRUE(lost);
  EXPECT_LT(attempts, 10);
  upstream.asked = 0;
  upstream.fails_after = SIZE_MAX;
  ASSERT_TRUE(stored.find_lost(RevisionId("another"), chunks));
  EXPECT_EQ(upstream.asked, 100u) << "with another one it says nothing";
}

TEST(StoredChunksTest, EachChunkIsRequestedUntilItIsAnswered) {
  ChunksOnly upstream;
  SystemClock clock;
  StoredChunks stored(upstream, others, clock);
  upstream.loses_each = 3;
  ChunkIds chunks;
  for (int i = 0; i < 1000; ++i) {
    chunks.insert(ChunkId("chunk" + std::to_string(i)));
    if (i % 2 == 0) stored.stored(ChunkId("chunk" + std::to_string(i)));
  }
  stored.doubt_after_an_error();
  int calls = 1;
  for (; !stored.find_missing(chunks) && calls < 20; ++calls) stored.doubt_after_an_error();
  EXPECT_LT(calls, 20);
  EXPECT_GE(upstream.asked, chunks.size()) << "also what was acknowledged before the error";
  EXPECT_LT(upstream.asked, 2 * chunks.size());
  upstream.asked = 0;
  upstream.loses_each = 0;
  stored.doubt_after_an_error();
  ASSERT_TRUE(stored.find_missing(chunks));
  EXPECT_EQ(upstream.asked, 0u);
  stored.forget_all();
  ASSERT_TRUE(stored.find_missing(chunks));
  EXPECT_EQ(upstream.asked, chunks.size());
}

}  // namespace
}  // namespace playfs::publish
