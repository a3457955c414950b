// Random operations on a stage, with publications, other bases and remounts in between, compared with the model.
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

/// False at the first disagreement, which is reported with everything that led to it.
bool run(std::uint64_t seed, int length) {
  std::mt19937_64 random(seed);
  test::Workbench bench;
  bench.open(test::revision_of("r1", kBase));
  Model model(kBase);
  std::string history;
  for (int step = 0; step < length; ++step) {
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
  return true;
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
