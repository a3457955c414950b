#include "model/rechunk.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/text.h"
#include "model/chunking.h"
#include "support/known_pieces.h"

namespace playfs {
namespace {

constexpr std::size_t kRoom = kMaxChunkJson;

/// Lines that do not repeat.
std::string lines_of(std::size_t size, int seed = 0) {
  std::string text;
  for (std::size_t i = 0; text.size() < size; ++i)
    text += "line " + std::to_string(i * 7919 + static_cast<std::size_t>(seed)) + " of some text\n";
  text.resize(size);
  return text;
}

/// A file that changes again and again, as the service has it.
struct Stored {
  std::vector<StoredPiece> near;
  test::PiecesInMemory known;
  std::size_t ids = 0;

  /// The number of new chunks that this version costs.
  std::size_t store(const std::string& text) {
    std::size_t uploads = 0;
    std::vector<StoredPiece> now;
    std::string joined;
    Text windows(text);
    auto pieces = cut_around(windows, near, &known, kRoom);
    EXPECT_TRUE(pieces);
    for (const auto& piece : *pieces) {
      std::string part = text.substr(piece.offset, piece.size);
      EXPECT_EQ(piece.offset, joined.size());
      joined += part;
      EXPECT_LE(part.size(), kMaxChunkText);
      EXPECT_LE(json_size_of_string(part), kRoom);
      EXPECT_TRUE(is_valid_utf8(part));
      if (piece.stored) {
        EXPECT_EQ(text_of(*piece.stored), part) << "a reference is to exactly this text";
        now.push_back(stored_piece(*piece.stored, part));
        continue;
      }
      EXPECT_EQ(piece.hash, ContentHash::of(part));
      auto id = *known.find(piece.hash);
      if (!id) {
        id = ChunkId(std::to_string(ids++));
        texts[*id] = part;
        known.add(piece.hash, part.size(), *id);
        ++uploads;
      }
      now.push_back(stored_piece(*id, part));
    }
    EXPECT_EQ(joined, text);
    near = std::move(now);
    return uploads;
  }
  std::string text_of(const ChunkId& id) { return texts[id]; }
  std::map<ChunkId, std::string> texts;
};

TEST(CutAround, AnInsertionAnywhereCostsOneChunkOrTwo) {
  const std::string text = lines_of(200 * 1024);
  for (std::size_t at = 0; at <= text.size(); at += 3571) {
    Stored stored;
    EXPECT_EQ(stored.store(text), 17u);
    EXPECT_EQ(stored.store(std::string(text).insert(at, "one line more\n")), 1u) << at;
  }
  for (std::size_t at = 0; at <= text.size(); at += 9973) {
    Stored stored;
    stored.store(text);
    EXPECT_LE(stored.store(std::string(text).insert(at, lines_of(9000, 7))), 2u) << at;
  }
}

TEST(CutAround, AChangeCostsOneAndGoingBackNothing) {
  const std::string text = lines_of(200 * 1024);
  std::string changed = text;
  changed.replace(100'000, 4, "LINE");
  Stored stored;
  stored.store(text);
  EXPECT_EQ(stored.store(changed), 1u);
  EXPECT_EQ(stored.store(text), 0u);
  EXPECT_EQ(stored.store(changed), 0u);
  // Also if nothing is known of how the file was cut.
  stored.near.clear();
  EXPECT_EQ(stored.store(changed), 0u);
  // And after it was cut in many ways.
  std::vector<std::string> versions = {text};
  for (std::size_t i = 0; i < 30; ++i) {
    versions.push_back(std::string(versions.back()).insert(i * 6151, lines_of(600, static_cast<int>(i))));
    stored.store(versions.back());
  }
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) EXPECT_EQ(stored.store(*version), 0u);
}

TEST(CutAround, ManyAppendsLeaveFewChunks) {
  Stored stored;
  std::string log;
  for (int i = 0; i < 500; ++i) {
    log += lines_of(150, i);
    EXPECT_EQ(stored.store(log), 1u);
  }
  EXPECT_LE(stored.near.size(), log.size() / kMaxChunkText + 2);
}

TEST(CutAround, ManyInsertionsLeaveNotManyMoreChunks) {
  Stored stored;
  std::string text = lines_of(200 * 1024);
  stored.store(text);
  std::size_t uploads = 0;
  for (std::size_t i = 0; i < 400; ++i) {
    text.insert(i * 104'729 % text.size(), lines_of(60, static_cast<int>(i)));
    uploads += stored.store(text);
  }
  EXPECT_LE(uploads, 400u + 80u) << "now and then a full chunk becomes two";
  EXPECT_LE(stored.near.size(), 3 * text.size() / kMaxChunkText);
}

TEST(CutAround, MovedPartsAreFound) {
  Stored stored;
  const std::string a = lines_of(60'000, 1), b = lines_of(60'000, 2), c = lines_of(60'000, 3);
  stored.store(a + b + c);
  EXPECT_LE(stored.store(c + "between\n" + a + b), 3u);
}

TEST(CutAround, RepetitionTakesNoTimeWithoutEnd) {
  Stored stored;
  std::string text(3'000'000, 'a');
  stored.store(text);
  text[1'500'000] = 'b';
  EXPECT_LE(stored.store(text), 2u);
  // Chunks almost everywhere.
  std::vector<StoredPiece> near;
  for (int i = 0; i < 200; ++i)
    near.push_back(stored_piece(ChunkId("x"), std::string(12'000, 'a') + std::to_string(i) + "b"));
  Text windows(std::string(1'000'000, 'a'));
  EXPECT_EQ(cut_around(windows, near, nullptr, kRoom)->size(), 82u);
}

TEST(CutAround, ManySmallChunksCostNoMoreThanNone) {
  const std::string line = lines_of(40), rest = lines_of(300'000, 5);
  std::string repeated;
  for (int i = 0; i < 1000; ++i) repeated += line + std::to_string(i);
  Stored alone;
  alone.store(line);
  const std::size_t fresh = cut_text(repeated, kRoom).size();
  EXPECT_EQ(alone.store(repeated), fresh);
  Stored among;
  among.store(line);
  const StoredPiece small = among.near.front();
  among.store(rest);
  among.near.push_back(small);
  EXPECT_LE(among.store(repeated + rest), fresh + 1);
}

TEST(CutAround, WhateverIsStoredTheTextIsWhole) {
  EXPECT_TRUE(rc::check([] {
    auto unit = rc::gen::element<std::string>("a", "\n", "\"", "\x01", "ä", "😀", lines_of(40, 1), lines_of(900, 2),
                                              lines_of(7000, 3));
    Stored stored;
    for (int version = 0; version < 4; ++version) {
      std::string text;
      for (const auto& part : *rc::gen::container<std::vector<std::string>>(unit)) text += part;
      stored.store(text);
      RC_ASSERT(stored.store(text) == 0u);
    }
  }));
}

}  // namespace
}  // namespace playfs
