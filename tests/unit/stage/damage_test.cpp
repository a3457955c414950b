// Damage of the log and of the database: whichever byte it is, no open loses the bytes of a staged file, and what is
// ambiguous is not opened.
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "base/sqlite.h"
#include "stage/store/operations_log.h"
#include "stage/store/repair.h"
#include "support/workbench.h"

namespace playfs::stage {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;

std::string bytes_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class DamageTest : public testing::Test {
 protected:
  static constexpr int kFiles = 30;

  [[nodiscard]] std::string directory() const { return bench.options().directory; }
  [[nodiscard]] std::string original() const { return directory() + "-original"; }

  /// Leaves in original() what kill -9 leaves. `checkpoints`: everything is in the database, and nothing in the log.
  void make(bool checkpoints, bool synced = false) {
    bench.housekeeping.log_bytes = checkpoints ? 1 : 1 << 20;
    bench.housekeeping.removals = 1000;
    bench.open(base);
    for (int i = 0; i < kFiles; ++i) {
      ASSERT_TRUE(bench.put("f" + std::to_string(i), "bytes of " + std::to_string(i)));
      if (i % 3 == 0) {
        ASSERT_TRUE(bench.put("tmp", "replaced") && bench.rename("tmp", "moved"));
      }
    }
    if (synced) {
      ASSERT_TRUE(bench.stage->sync(bench.stage->root()));
    }
    fs::remove_all(original());
    fs::copy(directory(), original(), fs::copy_options::recursive);
    bench.stage.reset();
  }
  void lay_out() {
    bench.stage.reset();
    fs::remove_all(directory());
    fs::copy(original(), directory(), fs::copy_options::recursive);
  }
  void change(const std::string& file, std::size_t at, const std::function<char(char)>& to) {
    std::string bytes = bytes_of(directory() + file);
    bytes[at] = to(bytes[at]);
    std::ofstream(directory() + file, std::ios::binary) << bytes;
  }
  Result<std::unique_ptr<Stage>> open() {
    PLAYFS_TRY([[maybe_unused]] auto recorded, Stage::recorded_base(directory()));
    return Stage::open(bench.options(), bench.clock, base);
  }
  static std::set<std::string> contents(const std::string& below) {
    std::set<std::string> all;
    for (const auto& item : fs::recursive_directory_iterator(below)) {
      if (item.is_regular_file() && item.file_size() < 100) all.insert(bytes_of(item.path()));
    }
    return all;
  }
  void expect_all_bytes(const std::string& what) {
    auto found = contents(directory());
    for (int i = 0; i < kFiles; ++i)
      ASSERT_TRUE(found.contains("bytes of " + std::to_string(i))) << what << " lost file " << i;
  }
  /// Path and content of the stage's files; SQLite may checkpoint its own log into the database when it is closed.
  static std::map<std::string, std::string> everything(const std::string& below) {
    std::map<std::string, std::string> all;
    for (const auto& item : fs::recursive_directory_iterator(below)) {
      const std::string name = item.path().filename();
      if (name != "lock" && !name.starts_with("stage.db"))
        all[item.path().string().substr(below.size())] = item.is_regular_file() ? bytes_of(item.path()) : "/";
    }
    return all;
  }
  std::string log_file() {
    for (const char* file : OperationsLog::kFiles) {
      if (fs::file_size(original() + file) > 0) return file;
    }
    return "";
  }
  void flip_each(const std::string& file, std::size_t step) {
    const std::size_t size = fs::file_size(original() + file);
    ASSERT_GT(size, 0U) << file;
    for (std::size_t at = 0; at < size; at += step) {
      lay_out();
      change(file, at, [](char byte) { return static_cast<char>(byte ^ 0x04); });
      const std::string what = file + " at " + std::to_string(at);
      auto opened = open();
      if (opened) (*opened)->changes().value();
      if (opened) opened->reset();
      ASSERT_NO_FATAL_FAILURE(expect_all_bytes(what));
      if (!opened) {
        ASSERT_TRUE(repair(directory(), "now")) << what;
        ASSERT_NO_FATAL_FAILURE(expect_all_bytes(what + ", mended"));
      }
    }
  }

  RevisionTreePtr base = test::revision_of("r1", {{"a", "one"}});
  test::Workbench bench;
};

TEST_F(DamageTest, NoByteOfTheLogCostsAFile) {
  ASSERT_NO_FATAL_FAILURE(make(false));
  flip_each(log_file(), 61);
}

TEST_F(DamageTest, NoByteOfTheDatabaseCostsAFile) {
  ASSERT_NO_FATAL_FAILURE(make(true));
  flip_each("/stage.db-wal", 4001);
  ASSERT_NO_FATAL_FAILURE(make(true));
  lay_out();
  ASSERT_TRUE(open());  // which checkpoints everything into the file
  fs::remove_all(original());
  fs::rename(directory(), original());
  flip_each("/stage.db", 797);
}

TEST_F(DamageTest, ALogThatWasChangedInTheMiddleIsNotOpenedAndNothingIsChanged) {
  ASSERT_NO_FATAL_FAILURE(make(false));
  const std::string log = log_file();
  const std::string whole = bytes_of(original() + log);
  // Each byte of the 20th record.
  auto records = OperationsLog::parse(whole, std::nullopt).records;
  constexpr std::size_t header = 32;
  std::size_t begin = 0;
  for (int i = 0; i < 19; ++i) begin += header + records[i].payload.size();
  for (std::size_t at = begin; at < begin + header + records[19].payload.size(); at += 3) {
    lay_out();
    change(log, at, [](char byte) { return static_cast<char>(byte ^ 0x10); });
    auto before = everything(directory());
    for (int again = 0; again < 2; ++again) {
      auto opened = open();
      ASSERT_FALSE(opened) << at - begin;
      EXPECT_EQ(opened.error().code, ErrorCode::corrupt);
      EXPECT_THAT(opened.error().message, HasSubstr("operations log"));
      EXPECT_EQ(opened.error().hint, "playfs doctor --repair");
      EXPECT_TRUE(everything(directory()) == before);
    }
  }
  auto health = examine(directory()).value();
  EXPECT_TRUE(health.is_log_damaged);
  EXPECT_FALSE(health.is_sound());
  const std::string folder = repair(directory(), "now").value();
  EXPECT_EQ(bytes_of(folder + log).size(), whole.size());
  EXPECT_THAT(bytes_of(folder + "/names"), HasSubstr("\tf29\n"));
  expect_all_bytes("mended");
  bench.open(base);
  EXPECT_EQ(bench.read("f3"), "bytes of 3") << "what was before it counts";
  EXPECT_FALSE(bench.find("f29"));
}

TEST_F(DamageTest, WhatWasSyncedMayNotBeMissing) {
  for (bool synced : {false, true}) {
    test::Workbench other;
    other.housekeeping.log_bytes = 1 << 20;
    other.open(base);
    ASSERT_TRUE(other.put("early", "kept") && other.put("lost", "bytes"));
    if (synced) {
      ASSERT_TRUE(other.stage->sync(other.stage->root()));
    }
    ASSERT_TRUE(other.put("late", "text"));
    const std::string copied = other.options().directory + "-copied";
    fs::copy(other.options().directory, copied, fs::copy_options::recursive);
    other.stage.reset();
    fs::remove_all(other.options().directory);
    fs::rename(copied, other.options().directory);
    // As if the second file's record had never been written, but the later ones had. Each file has two: its creation,
    // and its length.
    std::string log = other.options().directory + OperationsLog::kFiles[0];
    if (fs::file_size(log) == 0) log = other.options().directory + OperationsLog::kFiles[1];
    std::string bytes = bytes_of(log);
    auto records = OperationsLog::parse(bytes, std::nullopt).records;
    ASSERT_EQ(records.size(), 6U);
    constexpr std::size_t header = 32;
    const std::size_t second = 2 * header + records[0].payload.size() + records[1].payload.size();
    bytes.replace(second, header + records[2].payload.size(), header + records[2].payload.size(), '\0');
    std::ofstream(log, std::ios::binary) << bytes;
    auto opened = Stage::open(other.options(), other.clock, base);
    ASSERT_EQ(opened.has_value(), !synced) << "a power loss may take what was not synced, and only that";
    if (!opened) continue;
    ASSERT_TRUE((*opened)->found_lost());
    EXPECT_THAT((*opened)->found_lost()->message,
                ContainsRegex("unreferenced or incomplete.* were moved to .*lost\\+found"));
    opened->reset();
    EXPECT_THAT(contents(other.options().directory + "/lost+found"), Contains("bytes"));
    EXPECT_THAT(contents(other.options().directory + "/lost+found"), Contains("text"));
    const auto folder = fs::directory_iterator(other.options().directory + "/lost+found")->path();
    EXPECT_THAT(bytes_of(folder / "names"), HasSubstr("\tlate\n"));
    other.open(base);
    EXPECT_EQ(other.read("early"), "kept");
    EXPECT_FALSE(other.stage->found_lost()) << "said once";
  }
}

TEST_F(DamageTest, ADatabaseThatIsGoneIsNoNewStage) {
  ASSERT_NO_FATAL_FAILURE(make(true));
  const std::function<void()> damages[] = {
      [&] { fs::remove(directory() + "/stage.db"); },
      [&] { fs::resize_file(directory() + "/stage.db", 0); },
      [&] {
        fs::remove(directory() + "/stage.db");
        fs::remove(directory() + "/stage.db-wal");
      },
      [&] {
        fs::remove(directory() + "/stage.db");
        fs::remove(directory() + "/stage.db-wal");
        Database::open(directory() + "/stage.db", Database::Durability::normal).value();
      },
  };
  for (const auto& damage : damages) {
    lay_out();
    damage();
    auto before = everything(directory());
    auto opened = open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::corrupt) << opened.error().message;
    EXPECT_EQ(opened.error().hint, "playfs doctor --repair");
    EXPECT_TRUE(everything(directory()) == before);
    auto health = examine(directory()).value();
    ASSERT_TRUE(health.database);
    EXPECT_EQ(health.database->code, ErrorCode::corrupt);
    const std::string folder = repair(directory(), "now").value();
    expect_all_bytes("mended");
    EXPECT_TRUE(open()) << "anew";
    expect_all_bytes("opened anew");
  }
}

// So new that nothing else shows that there was one.
TEST_F(DamageTest, WhateverIsLeftOfAStageSaysThatItsDatabaseIsGone) {
  ASSERT_NO_FATAL_FAILURE(make(false));
  const std::string log = log_file();
  for (const std::string& left : {log, std::string("/stage.db-wal"), std::string("/spool")}) {
    lay_out();
    for (const auto& item : fs::directory_iterator(directory())) {
      if ('/' + item.path().filename().string() != left) fs::remove_all(item.path());
    }
    if (left == "/stage.db-wal") std::ofstream(directory() + left) << "pages";
    auto opened = Stage::open(bench.options(), bench.clock, base);
    ASSERT_FALSE(opened) << left;
    EXPECT_EQ(opened.error().code, ErrorCode::corrupt) << left;
    EXPECT_THAT(opened.error().message, HasSubstr(' ' + left.substr(1) + ' ')) << left;
  }
}

// Deletions, renames and links leave no file in the spool that would show it.
TEST_F(DamageTest, ADatabaseThatIsGoneIsMissedThoughItHeldNoBytes) {
  const std::function<void()> damages[] = {
      [&] { fs::remove(directory() + "/stage.db"); },
      [&] { fs::resize_file(directory() + "/stage.db", 0); },
      [&] {
        fs::remove(directory() + "/stage.db");
        Database::open(directory() + "/stage.db", Database::Durability::normal).value();
      },
      [&] {
        test::Workbench other;
        other.open(base);
        other.stage.reset();
        fs::copy_file(other.options().directory + "/stage.db", directory() + "/stage.db",
                      fs::copy_options::overwrite_existing);
      },
  };
  for (bool was_spool_there : {true, false}) {
    for (const auto& damage : damages) {
      fs::remove_all(directory());
      bench.open(base);
      ASSERT_TRUE(bench.rename("a", "moved"));
      bench.stage.reset();
      if (!was_spool_there) fs::remove(bench.spool());
      damage();
      EXPECT_TRUE(is_stage(directory()));
      auto health = examine(directory()).value();
      ASSERT_TRUE(health.database);
      EXPECT_EQ(health.database->code, ErrorCode::corrupt);
      for (int again = 0; again < 2; ++again) {
        auto opened = open();
        ASSERT_FALSE(opened);
        EXPECT_EQ(opened.error().code, ErrorCode::corrupt) << opened.error().message;
        EXPECT_EQ(opened.error().hint, "playfs doctor --repair");
      }
      ASSERT_TRUE(repair(directory(), "now"));
      EXPECT_TRUE(examine(directory()).value().is_sound());
      bench.open(base);
      EXPECT_TRUE(bench.find("a"));
    }
  }
}

TEST_F(DamageTest, ADamagedLastOperationIsSetAsideAndReported) {
  ASSERT_NO_FATAL_FAILURE(make(false, true));
  const std::string log = log_file();
  const std::string whole = bytes_of(original() + log);
  lay_out();
  change(log, whole.size() - 3, [](char byte) { return static_cast<char>(byte ^ 0x10); });
  const std::string changed = bytes_of(directory() + log);
  EXPECT_TRUE(examine(directory()).value().has_changed_last);
  auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_TRUE((*opened)->found_lost());
  EXPECT_THAT((*opened)->found_lost()->message,
              ContainsRegex("the damaged last operation of its log was moved to .*lost\\+found"));
  opened->reset();
  const auto folder = fs::directory_iterator(directory() + "/lost+found")->path();
  EXPECT_EQ(bytes_of(folder.string() + log), changed);
  auto again = open();
  ASSERT_TRUE(again);
  EXPECT_FALSE((*again)->found_lost()) << "said once";
}

TEST_F(DamageTest, AnOperationThatAPowerLossToreIsNoDamage) {
  ASSERT_NO_FATAL_FAILURE(make(false));
  const std::string log = log_file();
  const std::string whole = bytes_of(original() + log);
  auto last = OperationsLog::parse(whole, std::nullopt).records.back();
  for (std::size_t left = 0; left < last.payload.size(); ++left) {
    lay_out();
    fs::resize_file(directory() + log, whole.size() - last.payload.size() + left);
    EXPECT_FALSE(examine(directory()).value().has_changed_last) << left;
  }
}

TEST_F(DamageTest, WhatWasGivenUpIsRemovedAndWhatNothingNamesIsSetAside) {
  ASSERT_NO_FATAL_FAILURE(make(true));
  lay_out();
  EXPECT_THAT(contents(directory()), Contains("replaced"));
  const std::size_t before = bench.spool_files();
  ASSERT_GT(before, std::size_t{kFiles + 1}) << "of the files that were replaced";
  std::ofstream(bench.spool() + "/4711") << "nobody's";
  std::ofstream(bench.spool() + "/12~") << "half a copy";
  EXPECT_THAT(examine(directory()).value().orphans, testing::ElementsAre(4711U));
  bench.open(base);
  EXPECT_EQ(bench.spool_files(), std::size_t{kFiles + 1});
  ASSERT_TRUE(bench.stage->found_lost());
  EXPECT_THAT(contents(directory() + "/lost+found"), Contains("nobody's"));
  EXPECT_THAT(contents(directory()), testing::Not(Contains("half a copy")));
  // Its number is not used again.
  ASSERT_TRUE(bench.put("new", "text"));
  EXPECT_FALSE(fs::exists(bench.spool() + "/4711"));
  bench.reopen();
  EXPECT_FALSE(bench.stage->found_lost());
  EXPECT_EQ(bench.read("new"), "text");
}

TEST_F(DamageTest, NumbersOfSpoolFilesAreNotUsedTwice) {
  bench.open(base);
  std::set<std::string> used;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(bench.put("f", "text"));
    for (const auto& file : fs::directory_iterator(bench.spool()))
      EXPECT_TRUE(used.insert(file.path().filename()).second) << file.path();
    ASSERT_TRUE(bench.unlink("f"));
    bench.reopen();
  }
}

}  // namespace
}  // namespace playfs::stage
