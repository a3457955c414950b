#include "app/mistyped_command.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace playfs::app {

namespace {

constexpr std::size_t kMostMistakes = 2, kCharactersForEach = 3;
/// The longest word that is compared: no command is longer, and the time is quadratic.
constexpr std::size_t kLongestWord = 32;

/// How many mistakes make `typed` of `meant`: the optimal string alignment distance.
std::size_t mistakes(std::string_view typed, std::string_view meant) {
  std::vector<std::size_t> before_last, last(meant.size() + 1), row(meant.size() + 1);
  for (std::size_t at = 0; at <= meant.size(); ++at) last[at] = at;
  for (std::size_t i = 1; i <= typed.size(); ++i) {
    row[0] = i;
    for (std::size_t at = 1; at <= meant.size(); ++at) {
      const bool is_other = typed[i - 1] != meant[at - 1];
      row[at] = std::min({last[at] + 1, row[at - 1] + 1, last[at - 1] + (is_other ? 1 : 0)});
      if (i > 1 && at > 1 && typed[i - 1] == meant[at - 2] && typed[i - 2] == meant[at - 1])
        row[at] = std::min(row[at], before_last[at - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return last.back();
}

/// The candidate with the fewest mistakes; nullopt if all have many.
std::optional<std::string> nearest_word(std::string_view typed, const std::vector<std::string>& candidates) {
  if (typed.size() > kLongestWord) return std::nullopt;
  std::optional<std::string> nearest;
  std::size_t most = std::min(kMostMistakes, typed.size() / kCharactersForEach) + 1;  // one too many
  for (const std::string& candidate : candidates) {
    const std::size_t made = mistakes(typed, candidate);
    if (made >= most) continue;
    most = made;
    nearest = candidate;
  }
  return nearest;
}

/// What people know from git, and what does it here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kOfGit = {{
    {"push", "playfs commit -m MESSAGE, which publishes"},
    {"pull", "playfs update"},
    {"fetch", "playfs update"},
    {"add", "playfs commit -m MESSAGE: all that playfs status lists is staged"},
    {"stage", "playfs commit -m MESSAGE: all that playfs status lists is staged"},
    {"rm", "rm, then playfs commit -m MESSAGE"},
    {"mv", "mv, then playfs commit -m MESSAGE"},
    {"checkout", "playfs restore --from REV PATH"},
    {"switch", "playfs restore --from REV PATH"},
    {"reset", "playfs discard PATH; playfs revert REV takes back what was published"},
    {"undo", "playfs discard PATH; playfs revert REV takes back what was published"},
    {"stash", "playfs discard, which keeps a checkpoint; then playfs checkpoint restore ID"},
    {"remote", "playfs mount SRC DIR, or --site SRC"},
}};

Error unknown_command(const std::string& word) {
  const auto of_git = std::find_if(kOfGit.begin(), kOfGit.end(), [&](const auto& each) { return each.first == word; });
  return Error{ErrorCode::invalid_argument, "there is no command 'playfs " + word + "'",
               of_git == kOfGit.end() ? "playfs --help" : std::string(of_git->second)};
}

}  // namespace

std::optional<Error> mistyped_command(const CLI::App& app, const std::vector<std::string>& argv) {
  const CLI::App* group = &app;
  std::string words = "playfs";
  for (std::size_t at = 1; at < argv.size(); ++at) {
    const std::string& word = argv[at];
    if (word == "--site") ++at;  // the only option here that takes another word
    if (word.starts_with('-')) continue;
    std::vector<std::string> names;
    const CLI::App* chosen = nullptr;
    for (const CLI::App* each : group->get_subcommands({})) {
      names.push_back(each->get_name());
      names.insert(names.end(), each->get_aliases().begin(), each->get_aliases().end());
      if (each->check_name(word)) chosen = each;
    }
    if (chosen == nullptr) {
      auto meant = nearest_word(word, names);
      if (!meant) return group == &app ? std::optional(unknown_command(word)) : std::nullopt;
      return Error{ErrorCode::invalid_argument,
                   "there is no command '" + words + " " + word + "': did you mean '" + *meant + "'?",
                   words + " " + *meant + " --help"};
    }
    if (chosen->get_subcommands({}).empty()) return std::nullopt;
    group = chosen;
    words += " " + chosen->get_name();
  }
  return std::nullopt;
}

}  // namespace playfs::app
