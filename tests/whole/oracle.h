// Judges what a run left behind, from the service's log, the work trees on disk, and what users wrote and were told; as
// far as possible without the code under test.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/records.h"
#include "model/tree.h"
#include "stage/stage.h"
#include "whole/memory_store.h"
#include "whole/world.h"

namespace playfs::sim {

class Client;

/// The service's log. What a revision contains is computed here without any of playfs's code for that.
class Log {
 public:
  Log(const std::vector<service::StoredRecord>& revisions, const std::vector<service::StoredRecord>& chunks,
      const std::vector<service::StoredRecord>& messages);

  /// A file's bytes; nullopt if there is no such file.
  [[nodiscard]] std::optional<std::string> bytes(const std::string& revision, const std::string& path) const;
  [[nodiscard]] std::string bytes(const FileEntry& entry) const;
  const std::set<std::string>& content(const std::string& id);
  bool covers(const std::string& a, const std::string& b);
  [[nodiscard]] bool is_announced(const std::string& id) const { return announced_.contains(id); }
  [[nodiscard]] RevisionTreePtr tree(const std::string& id) const;

  std::vector<std::string> order;
  std::map<std::string, Revision> revisions;
  std::set<std::string> lost;                   ///< revisions that the service has lost by going back
  std::set<std::string> lost_heads;             ///< those of them that were head then
  std::map<std::string, std::string> messages;  ///< of revisions, by id

 private:
  std::map<std::string, std::set<std::string>> contents_;
  /// From an id to the id that represents it: foreign revisions with equal fields count as one.
  std::map<std::string, std::string> alike_;
  std::map<std::string, std::string> chunks_;  ///< texts by id
  std::set<std::string> announced_;            ///< revisions that messages announce
};

struct Verdict {
  std::vector<std::string> wrong;  ///< empty: all promises were kept
  std::size_t revisions = 0, merges = 0, branches = 0, crashes = 0, power_cuts = 0;
  std::size_t writes = 0;                      ///< acknowledged, and looked for afterwards
  std::map<std::string, std::size_t> waivers;  ///< number of waived violations, by reason
  void add(std::string what) {
    if (wrong.size() < 5) wrong.push_back(std::move(what));
  }
};

/// A file that neighbours delete for good.
inline constexpr const char* kVictimOfNeighbours = "victim-neighbour";

/// Tokens in the present work tree.
std::set<std::string> tokens_in_tree(stage::Stage& stage, const Log& log);
/// Every token that a client's user was told is written, and did not remove, is found again.
void check_writes(const Client& client, Log& log, Verdict& verdict);
/// No line disappears from `shared`, and no value from the state, unless it was overwritten (`removed`).
void check_lines(const std::set<std::string>& removed, Log& log, Verdict& verdict);
/// Files that nobody touches pass every merge unchanged; deleted ones stay deleted.
void check_history(const std::vector<std::unique_ptr<Client>>& clients,
                   const std::map<std::string, std::string>& brought_by_neighbours, Log& log, Verdict& verdict);

}  // namespace playfs::sim
