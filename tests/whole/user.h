// A user at a work tree: edits as programs do it, through the stage, each write with a token of its own that is
// remembered once the write was acknowledged. For one fiber at a time.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "whole/ledger.h"
#include "whole/process.h"

namespace playfs::sim {

/// What a file that several write lines of begins with.
std::string first_lines();
/// The rules of a project in which something is ignored, and the names of what all in it have uses for: in a folder
/// that is ignored, and beside what is published.
inline constexpr const char* kRules = "kept/\n*.log\n";
inline constexpr std::array kIgnored{"kept/both", "lists/both.log"};

class User {
 public:
  /// `is_alive`: what was done while it was counts, all else was never acknowledged.
  User(Process& process, Ledger& ledger, int client, std::function<bool()> is_alive)
      : process_(process),
        stage_(process.stage()),
        world_(process.world()),
        ledger_(ledger),
        client_(client),
        is_alive_(std::move(is_alive)) {}

  /// One random edit of one random path.
  void edit();
  /// A new file that nobody touches afterwards; its content, or "" where it did not come about.
  std::string bring(const std::string& path);
  void remove_for_good(const std::string& path);
  /// A fifo and a file that is ignored, which stay here: nobody touches them, and no commit takes them.
  void keep_here();
  /// All that is staged, and what was taken in.
  void discard_all();
  /// All that is staged but what is in conflict.
  void discard_others();
  /// What an update or a merge has left in conflict, and has no markers, is there to be decided from now on.
  void note_conflicts();
  /// Those of them that nobody has touched since.
  std::vector<std::string> untouched_conflicts();
  /// Whoever says that the state is right as it is gives up what others have there.
  void decide_state();
  /// Takes conflict markers out of what was left in conflict, and keeps all lines.
  void resolve();

 private:
  void remove(const std::string& path);
  void discard(const std::string& path);
  /// The token that was written; "" where it did not come about.
  std::string append(const std::string& path);
  void edit_ignored();
  /// A value of the project's state: one of the user's own, or one that all change.
  void change_state();
  [[nodiscard]] std::string state_text() const;
  [[nodiscard]] bool is_state_in_conflict() const;
  void save(const std::string& path);
  void write_line(const std::string& path);
  void rename(const std::string& from, const std::string& to);
  void change_mode(const std::string& path);
  void make_link(const std::string& path);
  void turn(const std::string& path);
  void replace(const std::string& path, const std::string& content, const std::string& token);

  void edit_at(const std::string& path);
  class Turn;
  struct Place {
    stage::InodePtr directory;
    std::string name;
  };
  /// Whether a commit takes it, whatever is ignored here.
  [[nodiscard]] bool is_published(const std::string& path) const;
  /// Where the user keeps what is to stay here, in the way of nobody.
  [[nodiscard]] std::string own_place() const { return "kept/only-" + std::to_string(client_); }
  /// Makes the directories above that are missing.
  Result<Place> place_of(const std::string& path);
  [[nodiscard]] stage::InodePtr find(const std::string& path);
  /// Bytes of its own, as a write needs them.
  Status bring_up(const stage::InodePtr& inode);
  Result<std::string> read(const stage::InodePtr& inode);
  /// Tokens in what is at a path, and below it.
  std::optional<std::string> content_at(const std::string& path);
  std::vector<std::string> tokens_below(const std::string& path);
  void acknowledge(const std::string& token, const std::string& path);
  std::string some_path();
  /// Mostly one that nobody else writes, so that what two do merges.
  std::size_t some_line();
  Status sync(const stage::InodePtr& inode);

  Process& process_;
  stage::Stage& stage_;
  World& world_;
  Ledger& ledger_;
  const int client_;
  const std::function<bool()> is_alive_;
};

}  // namespace playfs::sim
