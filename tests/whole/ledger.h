// What a client's user wrote into the work tree: a token of its own for each write that was acknowledged. Outlives the
// client's processes, as the user's memory does.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "whole/world.h"

namespace playfs::sim {

/// All tokens that stand in a text.
std::vector<std::string> tokens_in(std::string_view text);

struct Ledger {
  enum class Fate { kept, given_up, lost_power };
  struct Write {
    std::string path;
    nanoseconds at{};
    Fate fate = Fate::kept;
    bool is_safe = false;  ///< synced since
  };
  struct Dropped {
    std::string token;
    nanoseconds at{};
  };

  std::string next(int client) { return "tk-" + std::to_string(client) + "." + std::to_string(++count) + ";"; }
  /// What the user is about to remove or to write over. Leaves in `tokens` what was not given up before, say as a
  /// leftover of an earlier save still holds it: that alone may be taken back.
  void give_up(std::vector<std::string>& tokens) {
    std::erase_if(tokens, [&](const auto& token) {
      auto found = writes.find(token);
      return found == writes.end() || std::exchange(found->second.fate, Fate::given_up) != Fate::kept;
    });
  }
  void take_back(const std::vector<std::string>& tokens) {
    for (const auto& token : tokens)
      if (auto found = writes.find(token); found != writes.end()) found->second.fate = Fate::kept;
  }

  std::map<std::string, Write> writes;  ///< by token
  std::vector<Dropped> discarded;       ///< that nobody had published then
  int count = 0;
  bool is_calm = false;  ///< no file becomes a directory
  bool has_renamed = false;
  bool is_busy = false;  ///< the user does one thing at a time
};

}  // namespace playfs::sim
