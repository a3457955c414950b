// Random operations on a stage, with publications, other bases and remounts in between, compared with the model. At the
// end, checkpoints that were made meanwhile are restored.
//
// PLAYFS_MODEL_SEEDS=N runs N sequences instead of a few; PLAYFS_MODEL_SEED=S replays one.
#include <cstdlib>

#include "work_tree_model.h"

namespace playfs::model_test {
namespace {

const Texts kBase = {{"a", "one"},        {"b", {"#!", FileMode::executable}}, {"dir/a", "two"}, {"dir/d/b", "three"},
                     {"dir/d/c", "four"}, {"f", {"a", FileMode::symlink}}};

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// What was kept in a checkpoint, according to the model.
struct Kept {
  std::uint64_t id = 0;
  std::map<std::string, std::optional<Text>> staged;  ///< nullopt: deleted
};

std::optional<Kept> keep(test::Workbench& bench, const Model& model) {
  Kept kept;
  const Texts now = model.published_view();
  Texts all = now;
  all.insert(model.base().begin(), model.base().end());
  for (const auto& [path, text] : all) {
    auto here = now.find(path), there = model.base().find(path);
    if (here == now.end()) kept.staged.emplace(path, std::nullopt);
    else if (there == model.base().end() || !(here->second == there->second)) kept.staged.emplace(path, here->second);
  }
  auto made = bench.stage->checkpoint("model");
  EXPECT_TRUE(made) << made.error().message;
  if (!made || !*made) {
    EXPECT_TRUE(kept.staged.empty() || !made);
    return std::nullopt;
  }
  kept.id = (*made)->id;
  return kept;
}

/// Without what the ignore rules of playfs itself keep local.
Texts publishable(const Texts& files, const Texts& base) {
  Texts left;
  for (const auto& [path, text] : files)
    if (base.contains(path) || (path + "/").find("~/") == std::string::npos) left.emplace(path, text);
  return left;
}

/// Restores each in turn, and what was there before each.
void restore_all(test::Workbench& bench, const Texts& base, const std::vector<Kept>& all) {
  for (const Kept& kept : all) {
    const Texts before = bench.files();
    Texts expected = base;
    for (const auto& [path, text] : kept.staged) {
      if (text) expected.insert_or_assign(path, *text);
      else expected.erase(path);
    }
    auto restored = bench.stage->restore(kept.id, {});
    if (!restored) {
      // A fifo, or a directory of another base, is in the way.
      EXPECT_EQ(restored.error().code, ErrorCode::busy) << kept.id << ": " << restored.error().message;
      EXPECT_EQ(bench.files(), before) << kept.id;
      continue;
    }
    expected = publishable(expected, base);
    EXPECT_EQ(publishable(bench.files(), base), expected) << kept.id;
    if (kept.id % 3 == 0) bench.reopen();
    EXPECT_EQ(publishable(bench.files(), base), expected) << kept.id;
    if (restored->before == 0) continue;
    auto undone = bench.stage->restore(restored->before, {});
    EXPECT_TRUE(undone) << undone.error().message;
    // What was published then and is ignored now stays, local-only.
    EXPECT_EQ(publishable(bench.files(), base), publishable(before, base)) << "before " << kept.id;
  }
}

/// False at the first disagreement, which is reported with everything that led to it.
bool run(std::uint64_t seed, int length) {
  std::mt19937_64 random(seed);
  test::Workbench bench;
  bench.open(test::revision_of("r1", kBase));
  Model model(kBase);
  std::string history;
  std::vector<Kept> kept;
  for (int step = 0; step < length; ++step) {
    if (step % 20 == 19) {
      if (auto one = keep(bench, model)) kept.push_back(*std::move(one));
      history += "  checkpoint\n";
    }
    Operation operation = model.invent(random);
    history += "  " + describe(operation) + "\n";
    auto answer = apply(bench, model, operation);
    auto expected = model.apply(operation);
    auto said = [](std::optional<ErrorCode> code) { return code ? std::string(name_of(*code)) : "done"; };
    EXPECT_EQ(said(answer), said(expected));
    EXPECT_EQ(lines(bench), model.lines());
    EXPECT_EQ(bench.changes(), model.changes());
    EXPECT_EQ(bench.stage->is_clean(), model.changes().empty() && !model.has_pending());
    if (operation.kind == Operation::Kind::freeze && model.has_pending()) {
      auto layer = bench.stage->pending();
      Operation exactly;
      exactly.kind = Operation::Kind::settle;
      EXPECT_TRUE(layer && *layer && bench.published(**layer, model.base()) == model.next_base(exactly));
    }
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed << ", step " << step << ":\n" << history;
      return false;
    }
  }
  if (bench.stage->thaw("tx")) restore_all(bench, model.base(), kept);
  if (testing::Test::HasFailure()) ADD_FAILURE() << "seed " << seed << ", restoring:\n" << history;
  return !testing::Test::HasFailure();
}

TEST(StageModel, RandomOperationsAgree) {
  if (std::getenv("PLAYFS_MODEL_SEED")) {
    run(from_environment("PLAYFS_MODEL_SEED", 0), 400);
    return;
  }
  for (std::uint64_t seed = 1, last = from_environment("PLAYFS_MODEL_SEEDS", 12); seed <= last; ++seed) {
    if (!run(seed, 400)) return;
  }
}

}  // namespace
}  // namespace playfs::model_test
