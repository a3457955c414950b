// kill -9 at random moments, again and again on one stage: acknowledged operations are there, others are there
// completely or not at all.
//
// PLAYFS_CRASH_ROUNDS=N kills N times instead of a few dozen.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "work_tree_model.h"

namespace playfs::model_test {
namespace {

const Texts kBase = {{"a", "one"}, {"b", {"#!", FileMode::executable}}, {"dir/a", "two"}, {"dir/d/b", "three"}};

/// A mount's work until it is killed: one number on the pipe per answered operation.
[[noreturn]] void work(test::Workbench& bench, Model model, std::uint64_t seed, int acknowledgements) {
  bench.open(test::revision_of(model.base_id(), model.base()));
  std::mt19937_64 random(seed);
  for (std::uint8_t step = 1;; ++step) {
    Operation operation = model.invent(random);
    apply(bench, model, operation);
    model.apply(operation);
    if (::write(acknowledgements, &step, 1) != 1) _exit(1);
  }
}

TEST(StageCrash, NothingAcknowledgedIsLost) {
  const char* text = std::getenv("PLAYFS_CRASH_ROUNDS");
  const int rounds = text ? std::atoi(text) : 40;
  test::Workbench bench;
  Model model(kBase);
  std::mt19937_64 random(20261001);
  std::uint64_t answered = 0;
  for (int round = 0; round < rounds; ++round) {
    std::uint64_t seed = random();
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(pipes[0]);
      // Checkpoints and removals are under way when it dies.
      bench.housekeeping = {
          .log_bytes = 1000, .removals = 3, .patience = std::chrono::milliseconds(1), .own_thread = round % 2 == 0};
      work(bench, model, seed, pipes[1]);
    }
    close(pipes[1]);
    // Killed a short time after a randomly chosen operation.
    std::uint8_t step = 0;
    std::uint64_t steps = 0;
    for (std::uint64_t last = random() % 60; steps < last && ::read(pipes[0], &step, 1) == 1;) ++steps;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    kill(child, SIGKILL);
    while (::read(pipes[0], &step, 1) == 1) ++steps;
    close(pipes[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the worker ended by itself: " << status;

    std::mt19937_64 again(seed);
    std::string history;
    auto advance = [&](Model& at) {
      Operation operation = at.invent(again);
      history += "  " + describe(operation) + "\n";
      at.apply(operation);
    };
    for (std::uint64_t i = 0; i < steps; ++i) advance(model);
    Model next = model;
    advance(next);
    answered += steps;

    auto recorded = stage::Stage::recorded_base(bench.options().directory);
    ASSERT_TRUE(recorded) << recorded.error().message;
    bool on_next = !*recorded || **recorded != RevisionId(model.base_id());
    const Model& on = on_next && *recorded ? next : model;
    bench.open(test::revision_of(on.base_id(), on.base()));
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ":\n" << history;
    auto is = [&](const Model& state) {
      return lines(bench) == state.lines() && bench.changes() == state.changes() &&
             bench.stage->pending().value().has_value() == state.has_pending();
    };
    // An update in flight may have changed nothing but the base.
    bool as_answered = on.base_id() == model.base_id() && is(model);
    if (!as_answered && !is(next)) {
      EXPECT_EQ(lines(bench), model.lines());
      EXPECT_EQ(lines(bench), next.lines());
      EXPECT_EQ(bench.changes(), model.changes());
      EXPECT_EQ(bench.changes(), next.changes());
      FAIL() << "round " << round << ", seed " << seed << ", " << steps << " answered:\n" << history;
    }
    bench.stage.reset();
    // The operation in flight counts as done if it is visible.
    if (!as_answered) model = std::move(next);
  }
  EXPECT_GT(answered, static_cast<std::uint64_t>(rounds) * 5);
}

}  // namespace
}  // namespace playfs::model_test
