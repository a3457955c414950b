// Runs simulated schedules and reports those that broke a promise; see kUsage.
//
// Without a fault every run must be right. With a planted one at least one run must be wrong, which shows that the
// checks would detect such a fault; `--fault all` tries each. A failing seed is printed, and replays with --first SEED
// --schedules 1.
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "model/git_library.h"
#include "whole/simulation.h"

namespace {

using playfs::sim::Fault;

constexpr const char* kUsage =
    "usage: whole-schedules [--first SEED] [--schedules N] [--stop-at N] [--fault NAME|all] "
    "[--trace]\n";

struct Arguments {
  std::uint64_t first = 1, schedules = 20'000, stop_at = 3;
  std::vector<Fault> faults = {Fault::none};
  playfs::sim::Nature nature;
};

std::vector<Fault> faults_named(const std::string& name) {
  std::vector<Fault> faults;
  for (int i = 0; i < playfs::sim::kFaults; ++i) {
    auto fault = static_cast<Fault>(i);
    if (name == playfs::sim::name_of(fault) || (name == "all" && fault != Fault::none)) faults.push_back(fault);
  }
  return faults;
}

/// nullopt if they are invalid.
std::optional<Arguments> parse(std::vector<std::string> words) {
  Arguments arguments;
  arguments.nature.is_traced = std::erase(words, "--trace") != 0;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (i + 1 == words.size()) return std::nullopt;
    const std::string& value = words[i + 1];
    if (words[i] == "--fault") {
      arguments.faults = faults_named(value);
      if (arguments.faults.empty()) return std::nullopt;
      continue;
    }
    std::uint64_t* number = words[i] == "--first"       ? &arguments.first
                            : words[i] == "--schedules" ? &arguments.schedules
                            : words[i] == "--stop-at"   ? &arguments.stop_at
                                                        : nullptr;
    if (!number || value.empty() ||
        std::from_chars(value.data(), value.data() + value.size(), *number).ptr != value.data() + value.size())
      return std::nullopt;
  }
  return arguments;
}

struct Count {
  std::uint64_t wrong = 0, first_wrong = 0, runs = 0, waived = 0;
  std::size_t revisions = 0, merges = 0, branches = 0, crashes = 0, power_cuts = 0, writes = 0;
  std::map<std::string, std::size_t> waivers;
};

Count run(std::uint64_t first, std::uint64_t schedules, const playfs::sim::Nature& nature, std::uint64_t most_wrong) {
  Count count;
  for (std::uint64_t seed = first; seed < first + schedules; ++seed) {
    auto verdict = playfs::sim::simulate(seed, nature);
    ++count.runs;
    count.revisions += verdict.revisions;
    count.merges += verdict.merges;
    count.branches += verdict.branches;
    count.crashes += verdict.crashes;
    count.power_cuts += verdict.power_cuts;
    count.writes += verdict.writes;
    count.waived += !verdict.waivers.empty() && verdict.wrong.empty();
    for (const auto& [why, times] : verdict.waivers) count.waivers[why] += times;
    if (verdict.wrong.empty()) continue;
    if (count.wrong++ == 0) count.first_wrong = seed;
    std::cout << "seed " << seed << ":\n";
    for (const auto& what : verdict.wrong) std::cout << "  " << what << std::endl;
    if (count.wrong >= most_wrong) break;
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words == std::vector<std::string>{"--help"}) {
    std::cout << kUsage;
    return 0;
  }
  auto arguments = parse(words);
  if (!arguments) {
    std::cerr << kUsage;
    return 2;
  }
  playfs::set_log_level(playfs::LogLevel::error);
  if (auto ready = playfs::set_up_git_library(); !ready) {  // not on a fiber
    std::cerr << ready.error().message << '\n';
    return 2;
  }
  bool is_good = true;
  for (Fault planted : arguments->faults) {
    arguments->nature.fault = planted;
    std::uint64_t most_wrong = planted == Fault::none ? arguments->stop_at : 1;
    Count count = run(arguments->first, arguments->schedules, arguments->nature, most_wrong);
    double seconds = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    std::cout << playfs::sim::name_of(planted) << ": " << count.runs << " schedules, " << count.wrong << " wrong, "
              << count.runs - count.wrong - count.waived << " passed, " << count.waived
              << " neither, for something was waived; " << count.revisions << " revisions, " << count.merges
              << " merges, " << count.branches << " branches, " << count.crashes << " crashes, " << count.power_cuts
              << " of them power cuts, " << count.writes << " writes found again; " << seconds << " s of CPU so far, "
              << static_cast<double>(count.runs) / seconds << " a second\n";
    for (const auto& [why, times] : count.waivers) std::cout << "  waived " << times << " times: " << why << "\n";
    std::cout << std::flush;
    is_good = is_good && (planted == Fault::none) == (count.wrong == 0);
  }
  return is_good ? 0 : 1;
}
