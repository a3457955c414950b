// One simulated client: the engine of src/publish over a simulated network, disk and work tree, and a user who edits.
//
// What it has on disk outlives its being killed, as far as it was synced.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "publish/engine.h"
#include "remote/client.h"
#include "sim/world.h"

namespace playfs::sim {

/// A mistake that is built in on purpose, to see it caught.
enum class Fault {
  none,
  patch_without_reread,  ///< the log and head are read once in a commit, and believed from then on
  no_verify,             ///< after a PATCH nobody looks whether it held
  key_after_sending,     ///< the key of a revision is not the one that was journalled
  synced_late,           ///< the journal's last changes are not on disk yet when they are acted upon
  merge_keeps_deleted,   ///< a merge forgets what one side deleted
  scan_cut_short,        ///< the scan for siblings sees only the newest revision
};
const char* name_of(Fault fault);
inline constexpr int kFaults = 7;

struct Disk;

/// The journal in memory; what was not synced is gone after a crash.
class MemoryJournal final : public publish::JournalStorage {
 public:
  explicit MemoryJournal(Disk& disk) : disk_(disk) {}
  Status write(const publish::JournalChange& change) override;
  Result<std::optional<publish::Publication>> front() override;
  Result<std::vector<publish::Publication>> waiting() override;
  Result<std::optional<publish::Publication>> last() override;
  Result<std::vector<publish::Upload>> unsent(const publish::Publication& publication, std::int64_t from,
                                              std::size_t most) override;
  Result<publish::UploadTotals> totals(const publish::Publication& publication) override;
  Result<std::optional<publish::KnownChunk>> known_chunk(const ContentHash& text) override;
  Result<std::optional<publish::KnownText>> known_text(const ChunkId& chunk) override;
  Result<std::set<std::size_t>> known_sizes() override;
  Result<std::string> fact(const std::string& name) override;
  Result<std::map<std::string, std::string>> facts(const std::string& prefix) override;

 private:
  Disk& disk_;
};

struct JournalState {
  std::vector<publish::Publication> rows;
  std::vector<publish::Upload> uploads;
  std::unordered_map<ContentHash, publish::KnownChunk> known;
  std::unordered_map<ChunkId, publish::KnownText> texts;
  std::map<std::string, std::string> facts;
};

using Files = std::map<std::string, std::string>;

struct Disk {
  JournalState journal;
  JournalState synced_before;  ///< one change ago
  // The work tree.
  RevisionTreePtr base;
  Files files;
  std::vector<RevisionId> merge_parents;
  std::optional<stage::Frozen> pending;
  Files frozen;  ///< bytes of the pending layer
  std::map<RevisionId, RevisionTreePtr> cache;
};

/// What a run is about, beside the seed.
struct Plan {
  ProjectId project;
  int commits = 2;
  double crash = 0;         ///< of each instant at which it makes a difference
  bool dies = false;        ///< for good, at its first crash
  bool keeps_cache = true;  ///< of what it read, when it is killed
  /// What anybody in the run has read of a record comes to the same for all, and is worked out once.
  std::shared_ptr<std::map<RevisionId, RevisionTreePtr>> decoded;
  /// A chunk's text, for the user's eyes: what they see of files is not what is tried out here.
  std::function<std::string(const ChunkId&)> chunk_text;
  nanoseconds skew{};
  Weather weather;
  Fault fault = Fault::none;
};

/// What the user was told of a commit.
struct Told {
  std::string tx;
  publish::Outcome outcome = publish::Outcome::pending;
  RevisionId revision;
  nanoseconds at{};
};

/// Where head was when it was read last, and where it was then sent.
struct Move {
  RevisionId from, to;
  nanoseconds at{};
};

class Client {
 public:
  Client(World& world, const service::Service& service, int number, Plan plan, SimulatedTransport::Carried carried);
  ~Client();

  /// Edits and commits until all is done; comes back after crashes, unless it dies.
  void start();
  /// Looks after the project once more; fails where that could not be brought to an end.
  Result<publish::Standing> visit();

  [[nodiscard]] const std::string& agent() const { return agent_; }
  std::vector<Told> told;
  /// What each commit put there, which nobody else touches: path and content.
  std::map<std::string, std::pair<std::string, std::string>> brought;  ///< by tx
  /// What each commit deleted for good.
  std::map<std::string, std::string> deleted;  ///< by tx
  std::vector<Move> moves;
  bool has_died = false;

 private:
  struct Process;
  class Upstream;
  class Layers;

  void live();
  void edit_and_enqueue(Process& process);
  Status run_front(Process& process);
  void after_commit(Process& process, const publish::CommitResult& result);
  /// The work tree of a revision that nobody has changed yet.
  [[nodiscard]] Files files_of(const RevisionTreePtr& revision) const;
  /// An instant at which the client may be killed.
  void instant();

  World& world_;
  const service::Service& service_;
  const int number_;
  const std::string agent_;
  Plan plan_;
  const SimulatedTransport::Carried carried_;
  Disk disk_;
  int committed_ = 0;
  int crashes_ = 0;
  bool mortal_ = true;
};

}  // namespace playfs::sim
