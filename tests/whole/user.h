// A user at a work tree: edits as programs do it, through the stage, each write with a token of its own that is
// remembered once the write was acknowledged. For one fiber at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "whole/ledger.h"
#include "whole/process.h"

namespace playfs::sim {

/// What a file that several write lines of begins with.
std::string first_lines();

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
  /// Takes conflict markers out of what was left in conflict, and keeps all lines.
  void resolve();

 private:
  void remove(const std::string& path);
  void discard(const std::string& path);
  void append(const std::string& path);
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
  /// Makes the directories above that are missing.
  Result<Place> place_of(const std::string& path);
  [[nodiscard]] stage::InodePtr find(const std::string& path);
  /// Bytes of its own, as a write needs them.
  Status bring_up(const stage::InodePtr& inode);
  Result<std::string> read(const stage::InodePtr& inode);
  /// Tokens in what is at a path, and below it.
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
