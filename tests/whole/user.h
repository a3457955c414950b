// A user at a work tree: edits as programs make them, through the stage, each write with a unique token that is
// remembered once the write was acknowledged. For one fiber at a time.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "whole/ledger.h"
#include "whole/process.h"

namespace playfs::sim {

/// The beginning of a file in which several users write lines.
std::string first_lines();
/// Ignore rules of a project, and names that everybody in it may use: in an ignored folder, and beside published files.
inline constexpr const char* kRules = "kept/\n*.log\n";
inline constexpr std::array kIgnored{"kept/both", "lists/both.log"};

class User {
 public:
  /// `is_alive`: what was done while it holds counts; anything later was never acknowledged.
  User(Process& process, Ledger& ledger, int client, std::function<bool()> is_alive)
      : process_(process),
        stage_(process.stage()),
        world_(process.world()),
        ledger_(ledger),
        client_(client),
        is_alive_(std::move(is_alive)) {}

  /// Makes one random edit of one random path.
  void edit();
  /// Makes a new file that nobody touches afterwards. Returns its content, or "" if that failed.
  std::string bring(const std::string& path);
  void remove_for_good(const std::string& path);
  /// Makes a fifo and an ignored file that stay local: nobody touches them, and no commit takes them.
  void keep_here();
  /// Discards everything staged, and merges.
  void discard_all();
  /// Discards everything staged except conflicts.
  void discard_others();
  /// Records the conflicts without markers that an update or a merge has left, which are undecided from now on.
  void note_conflicts();
  /// Those of them that nobody has touched since.
  std::vector<std::string> untouched_conflicts();
  /// Declaring the state right gives up what others have in it.
  void decide_state();
  /// Removes conflict markers from conflicting files, and keeps all lines.
  void resolve();

 private:
  void remove(const std::string& path);
  void discard(const std::string& path);
  /// Returns the written token; "" if that failed.
  std::string append(const std::string& path);
  void edit_ignored();
  /// Changes a value of the project's state: the user's own, or a shared one.
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
  /// Whether a commit takes it, given the ignore rules here.
  [[nodiscard]] bool is_published(const std::string& path) const;
  /// A place for the user's local-only files, in nobody's way.
  [[nodiscard]] std::string own_place() const { return "kept/only-" + std::to_string(client_); }
  /// Makes missing parent directories.
  Result<Place> place_of(const std::string& path);
  [[nodiscard]] stage::InodePtr find(const std::string& path);
  /// Gives the file bytes of its own, as a write needs them.
  Status bring_up(const stage::InodePtr& inode);
  Result<std::string> read(const stage::InodePtr& inode);
  /// Tokens in and below a path.
  std::optional<std::string> content_at(const std::string& path);
  std::vector<std::string> tokens_below(const std::string& path);
  void acknowledge(const std::string& token, const std::string& path);
  std::string some_path();
  /// Mostly one that nobody else writes, so that changes of two users merge.
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
