// Power cuts at random moments: the stage opens, and whatever was synced and not touched since is there as it was.
//
// PLAYFS_POWER_CUTS=N cuts N times instead of 1,000.
#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "support/forgetful_disk.h"
#include "work_tree_model.h"

namespace playfs::model_test {
namespace {

const Texts kBase = {{"a", "one"}, {"b", {"#!", FileMode::executable}}, {"dir/a", "two"}, {"dir/d/b", "three"}};
constexpr int kSteps = 120;
constexpr int kCutsOfARun = 40;

struct Moment {
  std::size_t events = 0;  ///< up to this state
  Model state;
  bool synced = false;  ///< everything, as of these events
};

void sync_everything(test::Workbench& bench, const stage::InodePtr& directory) {
  auto entries = bench.stage->list(directory, 0, 1000).value();
  for (const auto& entry : entries) {
    ASSERT_TRUE(bench.stage->sync(entry.inode));
    if (bench.stage->attributes(entry.inode)->kind == stage::Kind::directory) sync_everything(bench, entry.inode);
  }
  ASSERT_TRUE(bench.stage->sync(directory));
}

/// What no operation between two moments touched.
std::vector<std::string> untouched(const std::vector<Moment>& moments, std::size_t first, std::size_t last) {
  auto sorted = [](const Model& model) {
    auto lines = model.lines();
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  auto common = sorted(moments[first].state);
  for (std::size_t i = first + 1; i <= last; ++i) {
    std::vector<std::string> both;
    auto other = sorted(moments[i].state);
    std::set_intersection(common.begin(), common.end(), other.begin(), other.end(), std::back_inserter(both));
    common = std::move(both);
  }
  return common;
}

void run(std::uint64_t seed, int cuts) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  test::Workbench bench;
  Model model(kBase);
  bench.open(test::revision_of(model.base_id(), model.base()));
  bench.stage.reset();

  test::ForgetfulDisk disk(bench.options().directory);
  std::vector<Moment> moments = {{disk.events(), model, true}};
  std::string history;
  bench.open(test::revision_of(model.base_id(), model.base()));
  for (int step = 0; step < kSteps; ++step) {
    Operation operation = model.invent(random);
    history += "  " + describe(operation) + "\n";
    apply(bench, model, operation);
    model.apply(operation);
    moments.push_back({disk.events(), model, false});
    if (random() % 8 == 0) {
      sync_everything(bench, bench.stage->root());
      ASSERT_FALSE(testing::Test::HasFailure()) << history;
      moments.push_back({disk.events(), model, true});
    }
  }
  bench.stage.reset();
  const std::size_t events = disk.events();
  disk.stop();

  for (int cut = 0; cut < cuts; ++cut) {
    std::size_t at = moments[0].events + random() % (events - moments[0].events + 1);
    std::size_t last = 0, synced = 0;
    while (last + 1 < moments.size() && moments[last].events <= at) ++last;  // the first that may be incomplete
    for (std::size_t i = 0; i <= last; ++i)
      if (moments[i].synced && moments[i].events <= at) synced = i;
    disk.lay_out(at, random, bench.options().directory);
    ++bench.boot;

    auto recorded = stage::Stage::recorded_base(bench.options().directory);
    ASSERT_TRUE(recorded) << recorded.error().message << "\n" << history;
    ASSERT_TRUE(*recorded);
    const Model* on = nullptr;
    for (std::size_t i = synced; i <= last; ++i)
      if (RevisionId(moments[i].state.base_id()) == **recorded) on = &moments[i].state;
    ASSERT_TRUE(on) << "it stands on " << (*recorded)->text() << "\n" << history;
    bench.open(test::revision_of(on->base_id(), on->base()));
    ASSERT_FALSE(testing::Test::HasFailure()) << history;
    auto found = lines(bench);
    std::sort(found.begin(), found.end());
    for (const auto& line : untouched(moments, synced, last))
      ASSERT_TRUE(std::binary_search(found.begin(), found.end(), line))
          << "lost: " << line << "\nfound:" << testing::PrintToString(found) << "\nafter event " << at
          << ", operations " << synced << " to " << last << "\n"
          << history;
    bench.stage.reset();
  }
}

TEST(StagePower, WhatWasSyncedIsThere) {
  const char* text = std::getenv("PLAYFS_POWER_CUTS");
  const int cuts = text ? std::atoi(text) : 1000;
  for (int done = 0; done < cuts && !HasFailure(); done += kCutsOfARun) run(20261121 + done, kCutsOfARun);
}

// Whatever a power cut leaves of the first start, the next one starts over: a missing database is not damage then.
TEST(StagePower, AFirstStartThatWasCutShortIsBegunAgain) {
  test::Workbench bench;
  auto base = test::revision_of("r1", kBase);
  const std::string directory = bench.options().directory;
  ASSERT_TRUE(make_private_directory(directory));
  test::ForgetfulDisk disk(directory);
  const std::size_t begin = disk.events();
  bench.open(base);
  const std::size_t opened = disk.events();
  ASSERT_TRUE(bench.unlink("a") && bench.rename("b", "c"));
  ASSERT_TRUE(bench.stage->sync(bench.stage->root()));
  const std::size_t synced = disk.events();
  bench.stage.reset();
  const std::size_t end = disk.events();
  disk.stop();
  ASSERT_GT(opened, begin);
  std::mt19937_64 random(20261121);
  for (std::size_t at = begin; at <= end; ++at) {
    for (int luck = 0; luck < 3; ++luck) {
      disk.lay_out(at, random, directory);
      ++bench.boot;
      auto recorded = stage::Stage::recorded_base(directory);
      ASSERT_TRUE(recorded) << recorded.error().message << " after event " << at << " of " << end;
      bench.open(base);
      ASSERT_FALSE(HasFailure()) << "after event " << at << " of " << begin << " to " << end;
      EXPECT_FALSE(bench.stage->found_lost()) << bench.stage->found_lost()->message;
      EXPECT_TRUE(at < synced || !bench.find("a")) << "after event " << at;
      bench.stage.reset();
    }
  }
}

// What editors and package managers count on: write a new file, sync it, rename it over the old one.
TEST(StagePower, AFileThatIsReplacedIsTheOldOneOrTheNewOne) {
  test::Workbench bench;
  auto base = test::revision_of("r1", kBase);
  bench.open(base);
  const std::string directory = bench.options().directory;
  auto put_synced = [&](const std::string& path, const std::string& text) {
    ASSERT_TRUE(bench.put(path, text));
    ASSERT_TRUE(bench.stage->sync(bench.find(path)));
  };
  put_synced("f", "old");
  put_synced("g", "old");
  ASSERT_TRUE(bench.stage->sync(bench.stage->root()));
  bench.stage.reset();

  test::ForgetfulDisk disk(directory);
  const std::size_t begin = disk.events();
  bench.open(base);
  put_synced("f~", "new");
  ASSERT_TRUE(bench.rename("f~", "f"));
  ASSERT_TRUE(bench.unlink("g"));
  bench.stage.reset();
  const std::size_t end = disk.events();
  disk.stop();
  std::mt19937_64 random(20261121);
  for (std::size_t at = begin; at <= end; ++at) {
    for (int luck = 0; luck < 4; ++luck) {
      disk.lay_out(at, random, directory);
      ++bench.boot;
      bench.open(base);
      auto f = bench.read("f").value_or("nothing"), g = bench.read("g").value_or("nothing");
      ASSERT_TRUE(f == "old" || f == "new") << f << " after event " << at << " of " << begin << " to " << end;
      ASSERT_TRUE(g == "old" || g == "nothing") << g << " after event " << at << " of " << begin << " to " << end;
      bench.stage.reset();
    }
  }
}

// And without a sync, whoever syncs the log and whenever the housekeeper runs.
TEST(StagePower, AFileThatIsReplacedUnsyncedIsTheOldOneOrTheNewOne) {
  for (std::size_t removals : {1, 3, 1000}) {
    test::Workbench bench;
    auto base = test::revision_of("r1", {{"below", "old"}});
    bench.open(base);
    const std::string directory = bench.options().directory;
    ASSERT_TRUE(bench.put("f", "old") && bench.put("other", "text"));
    ASSERT_TRUE(bench.stage->sync(bench.find("f")) && bench.stage->sync(bench.stage->root()));
    bench.stage.reset();

    test::ForgetfulDisk disk(directory);
    const std::size_t begin = disk.events();
    bench.housekeeping.removals = removals;
    bench.open(base);
    const std::string texts[] = {"new", "newer", "newest"};
    std::size_t last_synced = 0;
    for (const std::string& text : texts) {
      for (const std::string name : {"f", "below"}) ASSERT_TRUE(bench.put("tmp", text) && bench.rename("tmp", name));
      ASSERT_TRUE(bench.stage->sync(bench.find("other")));  // which syncs the log
    }
    ASSERT_TRUE(bench.stage->sync(bench.find("f")));
    last_synced = disk.events();
    ASSERT_TRUE(bench.put("tmp", "after") && bench.rename("tmp", "below"));
    bench.stage.reset();
    const std::size_t end = disk.events();
    disk.stop();
    std::mt19937_64 random(20261122);
    for (std::size_t at = begin; at <= end; ++at) {
      for (int luck = 0; luck < 6; ++luck) {
        disk.lay_out(at, random, directory);
        ++bench.boot;
        bench.open(base);
        auto f = bench.read("f").value_or("nothing"), below = bench.read("below").value_or("nothing");
        const std::string where = " after event " + std::to_string(at) + " of " + std::to_string(begin) + " to " +
                                  std::to_string(end) + ", removals " + std::to_string(removals);
        ASSERT_TRUE(f == "old" || f == "new" || f == "newer" || f == "newest") << '"' << f << '"' << where;
        ASSERT_TRUE(at < last_synced || f == "newest") << '"' << f << '"' << where;
        ASSERT_TRUE(below == "old" || below == "new" || below == "newer" || below == "newest" || below == "after")
            << '"' << below << '"' << where;
        ASSERT_EQ(bench.read("other").value_or("nothing"), "text") << where;
        bench.stage.reset();
      }
    }
  }
}

TEST(StagePower, TheFirstSyncOfANewStageIsKept) {
  test::Workbench bench;
  auto base = test::revision_of("r1", kBase);
  const std::string directory = bench.options().directory;
  std::filesystem::create_directory(directory);
  test::ForgetfulDisk disk(directory);
  bench.open(base);
  ASSERT_TRUE(bench.put("f", "kept"));
  ASSERT_TRUE(bench.stage->sync(bench.find("f")));
  const std::size_t synced = disk.events();
  ASSERT_TRUE(bench.unlink("a"));
  bench.stage.reset();
  disk.stop();
  std::mt19937_64 random(20261121);
  for (std::size_t at = synced; at <= disk.events(); ++at) {
    for (int luck = 0; luck < 4; ++luck) {
      disk.lay_out(at, random, directory);
      ++bench.boot;
      bench.open(base);
      ASSERT_EQ(bench.read("f").value_or("nothing"), "kept") << "after event " << at << ", synced at " << synced;
      bench.stage.reset();
    }
  }
}

}  // namespace
}  // namespace playfs::model_test
