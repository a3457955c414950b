// What a client's user wrote into the work tree: a unique token per acknowledged write. Outlives the client's
// processes, like the user's memory.
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

/// All tokens in a text.
std::vector<std::string> tokens_in(std::string_view text);

struct Ledger {
  enum class Fate { kept, given_up, lost_power };  ///< lost_power: nothing was promised, and the power went
  struct Write {
    std::string path;
    nanoseconds at{};
    Fate fate = Fate::kept;
    bool is_safe = false;  ///< synced since
  };
  std::string next(int client) { return "tk-" + std::to_string(client) + "." + std::to_string(++count) + ";"; }
  /// Call before the user removes or overwrites tokens. Leaves in `tokens` those that were not given up before, for
  /// example in a leftover of an earlier save: only these may be taken back.
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

  /// They are in a file that was synced.
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
  std::set<std::string> kept_here;      ///< tokens of ignored files that nobody else had when they were made
  /// Paths in conflict without markers, with what was left there; until the user resolves them.
  std::map<std::string, std::optional<std::string>> open;
  int count = 0;
  std::set<std::string> in_tree;  ///< tokens that were in the work tree when the service went back
  std::set<std::string> removed;  ///< also other users' tokens, and attempts that failed
  int merges = 0;                 ///< that were put into the work tree
  /// A merge or another base came while a file was overwritten, so the ledger cannot tell which tokens that removed.
  bool has_raced = false;
  std::optional<nanoseconds> renamed_at;  ///< of the first rename
  bool is_busy = false;                   ///< the user does one thing at a time
};

}  // namespace playfs::sim
