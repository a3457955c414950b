// Runs simulated schedules and says which of them broke a promise.
//
//   sim-schedules [--first SEED] [--schedules N] [--fault NAME] [--stop-at N]
//
// Without a fault every run has to be right. With a planted one at least one has to be wrong, which shows that the
// checks would see such a mistake; `--fault all` tries each. A failing seed is printed, and replays with --first SEED
// --schedules 1.
#include <ctime>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include <git2.h>

#include "sim/simulation.h"

namespace {

using playfs::sim::Fault;

struct Count {
  std::uint64_t wrong = 0, first_wrong = 0, runs = 0;
  std::size_t revisions = 0, merges = 0, branches = 0;
};

Count run(std::uint64_t first, std::uint64_t schedules, Fault fault, std::uint64_t most_wrong) {
  Count count;
  for (std::uint64_t seed = first; seed < first + schedules; ++seed) {
    auto verdict = playfs::sim::simulate(seed, fault);
    ++count.runs;
    count.revisions += verdict.revisions;
    count.merges += verdict.merges;
    count.branches += verdict.branches;
    if (verdict.wrong.empty()) continue;
    if (count.wrong++ == 0) count.first_wrong = seed;
    std::cout << "seed " << seed << ":\n";
    for (const auto& what : verdict.wrong) std::cout << "  " << what << "\n";
    if (count.wrong >= most_wrong) break;
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t first = 1, schedules = 20'000, stop_at = 3;
  std::string fault = "none";
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string name = argv[i];
    if (name == "--first") first = std::strtoull(argv[i + 1], nullptr, 10);
    else if (name == "--schedules") schedules = std::strtoull(argv[i + 1], nullptr, 10);
    else if (name == "--stop-at") stop_at = std::strtoull(argv[i + 1], nullptr, 10);
    else if (name == "--fault") fault = argv[i + 1];
    else return 2;
  }
  git_libgit2_init();  // once, rather than at each merge
  bool is_good = true;
  for (int i = 0; i < playfs::sim::kFaults; ++i) {
    auto planted = static_cast<Fault>(i);
    bool is_chosen = fault == playfs::sim::name_of(planted) || (fault == "all" && planted != Fault::none);
    if (!is_chosen) continue;
    Count count = run(first, schedules, planted, planted == Fault::none ? stop_at : 1);
    double seconds = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    std::cout << playfs::sim::name_of(planted) << ": " << count.runs << " schedules, " << count.wrong << " wrong; "
              << count.revisions << " revisions, " << count.merges << " merges, " << count.branches << " branches; "
              << seconds << " s of CPU so far" << std::endl;
    is_good = is_good && (planted == Fault::none) == (count.wrong == 0);
  }
  git_libgit2_shutdown();
  return is_good ? 0 : 1;
}
