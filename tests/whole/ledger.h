// What a client's user wrote into the work tree: a token of its own for each write that was acknowledged. Outlives the
// client's processes, as the user's memory does.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "whole/world.h"

namespace playfs::sim {

/// All tokens that stand in a text.
std::vector<std::string> tokens_in(std::string_view text);

struct Ledger {
  enum class Fate { kept, given_up, lost_power };  ///< the last: nothing was promised, and the power went
  struct Write {
    std::string path;
    nanoseconds at{};
    Fate fate = Fate::kept;
    bool is_safe = false;  ///< synced since
  };
  std::string next(int client) { return "tk-" + std::to_string(client) + "." + std::to_string(++count) + ";"; }
  /// What the user is about to remove or to write over. Leaves in `tokens` what was not given up before, say as a
  /// leftover of an earlier save still holds it: that alone may be taken back.
  void give_up(std::vector<std::string>& tokens) {
    removed.insert(tokens.begin(), tokens.end());
    std::erase_if(tokens, [&](const auto& token) {
      auto found = writes.find(token);
      return found == writes.end() || std::exchange(found->second.fate, Fate::given_up) != Fate::kept;
    });
  }
  void take_back(const std::vector<std::string>& tokens) {
    for (const auto& token : tokens)
      if (auto found = writes.find(token); found != writes.end()) found->second.fate = Fate::kept;
  }

  /// They stand in a file that was synced.
  void synced(const std::vector<std::string>& tokens) {
    for (const auto& token : tokens)
      if (auto found = writes.find(token); found != writes.end()) found->second.is_safe = true;
  }
  [[nodiscard]] bool is_safe(const std::vector<std::string>& tokens) const {
    return std::all_of(tokens.begin(), tokens.end(), [&](const auto& token) {
      auto found = writes.find(token);
      return found != writes.end() && found->second.is_safe;
    });
  }
  void lose_power() {
    for (auto& [token, write] : writes)
      if (write.fate == Fate::kept && !write.is_safe) write.fate = Fate::lost_power;
  }

  std::map<std::string, Write> writes;  ///< by token
  std::set<std::string> kept_here;  ///< tokens of files that are ignored, and were nobody else's when they were made
  /// Paths in conflict that have no markers, with what was left there; until the user says what is right.
  std::map<std::string, std::optional<std::string>> open;
  int count = 0;
  std::set<std::string> in_tree;  ///< tokens that stood in the work tree when the service went back
  std::set<std::string> removed;  ///< also tokens of others, and where it did not come about
  int merges = 0;                 ///< that were put into the work tree
  /// One came while a file was written over, or another base, and what went with that nobody can tell from here.
  bool has_raced = false;
  std::optional<nanoseconds> renamed_at;  ///< first
  bool is_busy = false;                   ///< the user does one thing at a time
};

}  // namespace playfs::sim
